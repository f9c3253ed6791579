// SPDX-License-Identifier: MIT OR Apache-2.0
// Coroutines of C++20 in one thread: a service that answers, clients in other processes, a bell that a thread rings, a sender
// that waits for room, and one whose bell always has something, which lets the others run. On a loop of thirty lines around poll(), then on Asio's. Usage: coroutine NAME
#include <doorbell_coroutine.hpp>

#include <asio.hpp>
#include <iostream>
#include <map>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr int clients = 2, questions = 100, messages = 1000;

class poll_loop {
public:
    void when_readable(int fd, void (*call)(void *), void *with) { asked_[fd] = {call, with}; }
    void forget(int fd) { asked_.erase(fd); }

    // Until nobody waits.
    void run() {
        while (!asked_.empty()) {
            std::vector<pollfd> files;
            for (const auto &[fd, _] : asked_)
                files.push_back({fd, POLLIN, 0});
            poll(files.data(), files.size(), -1);
            for (const pollfd &file : files)
                // Another's call may have had it forgotten.
                if (auto asked = asked_.find(file.fd); file.revents != 0 && asked != asked_.end()) {
                    auto [call, with] = asked->second;
                    asked_.erase(asked);
                    call(with);
                }
        }
    }

private:
    std::map<int, std::pair<void (*)(void *), void *>> asked_;
};

class asio_loop {
public:
    void when_readable(int fd, void (*call)(void *), void *with) {
        auto &file = files_.try_emplace(fd, std::make_unique<watched>(context_, fd)).first->second;
        file->wanted = std::make_shared<bool>(true);
        file->descriptor.async_wait(asio::posix::descriptor::wait_read, [call, with, wanted = file->wanted](std::error_code) {
            // It may have been ready to be called when it was forgotten.
            if (std::exchange(*wanted, false))
                call(with);
        });
    }
    void forget(int fd) {
        if (auto file = files_.find(fd); file != files_.end()) {
            *file->second->wanted = false;
            files_.erase(file);
        }
    }
    void run() { context_.run(); }

private:
    struct watched {
        watched(asio::io_context &context, int fd) : descriptor(context, fd) {}
        // The end closes it.
        ~watched() { descriptor.release(); }
        asio::posix::stream_descriptor descriptor;
        std::shared_ptr<bool> wanted;
    };
    asio::io_context context_;
    std::map<int, std::unique_ptr<watched>> files_;
};

// A coroutine that nobody waits for.
struct task {
    struct promise_type {
        task get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

int ask(const char *name) {
    using namespace std::chrono_literals;
    auto [to, from] = doorbell::connect(name, 60s);
    for (int i = 0; i < questions; i++) {
        const std::string question = "question " + std::to_string(i);
        to.send(question);
        if (from.recv_for(60s).value().str() != question)
            return 1;
    }
    to.send("end");
    return 0;
}

template <typename Loop> task answer(Loop &loop, doorbell::service &service, int &ends) {
    while (ends < clients) {
        auto [client, question] = co_await doorbell::recv(loop, service);
        if (question == "end")
            ends++;
        else if (!service.send(client, question))
            throw std::runtime_error("a client went");
    }
}

template <typename Loop> task hear(Loop &loop, doorbell::bell &bell, unsigned &rings) {
    while (rings < 3)
        rings += co_await doorbell::wait(loop, bell);
}

// Both in one thread: each sleeps when the ring is full, or empty.
template <typename Loop> task fill(Loop &loop, doorbell::sender sender) {
    for (int i = 0; i < messages; i++)
        co_await doorbell::send(loop, sender, std::string(100, 'a') + std::to_string(i));
}

template <typename Loop> task empty(Loop &loop, doorbell::receiver receiver, int &received) {
    while (auto message = co_await doorbell::recv(loop, receiver))
        if (message->str() == std::string(100, 'a') + std::to_string(received))
            received++;
}

// Never without a ring. It ends when another coroutine says so, which it must let run for that.
template <typename Loop> task never_wait(Loop &loop, doorbell::bell &bell, const bool &stop, unsigned &turns) {
    for (; !stop; turns++) {
        bell.ring();
        co_await doorbell::wait(loop, bell);
    }
}

template <typename Loop> task say_stop(Loop &loop, doorbell::bell &bell, bool &stop) {
    co_await doorbell::wait(loop, bell);
    stop = true;
}

// What a coroutine that is destroyed waited for is not called any more.
struct dropped {
    struct promise_type {
        dropped get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
    ~dropped() { handle.destroy(); }
};

template <typename Loop> dropped wait_in_vain(Loop &loop, doorbell::bell &bell) { co_await doorbell::wait(loop, bell); }

template <typename Loop> bool run(const char *name) {
    for (int i = 0; i < clients; i++)
        if (fork() == 0)
            _exit(ask(name));
    Loop loop;
    int ends = 0, received = 0;
    unsigned rings = 0;
    doorbell::service service = doorbell::listen(name);
    doorbell::bell bell, silent;
    answer(loop, service, ends);
    hear(loop, bell, rings);
    { dropped waits = wait_in_vain(loop, silent); }
    std::thread ringer([rings = bell.clone()] {
        for (int i = 0; i < 3; i++)
            rings.ring();
    });
    auto [sender, receiver] = doorbell::channel(4096);
    empty(loop, std::move(receiver), received);
    fill(loop, std::move(sender));
    doorbell::bell busy, enough;
    bool stop = false;
    unsigned turns = 0;
    say_stop(loop, enough, stop);
    enough.ring();
    never_wait(loop, busy, stop, turns);
    loop.run();
    ringer.join();
    if (!stop || turns == 0)
        return false;
    for (int i = 0, status; i < clients; i++)
        if (wait(&status) < 0 || status != 0)
            return false;
    std::cout << ends << " clients, " << rings << " rings, " << received << " messages\n";
    return true;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::cerr << "usage: coroutine NAME\n";
        return 2;
    }
    return run<poll_loop>(argv[1]) && run<asio_loop>(argv[1]) ? 0 : 1;
}
