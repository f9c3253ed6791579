// SPDX-License-Identifier: MIT OR Apache-2.0
// Two processes in C++: the parent hosts a path, the child it forks joins there, and both are told of the other's end.
#include <doorbell.hpp>

#include <atomic>
#include <chrono>
#include <cstring>
#include <iostream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr char hello[] = "hello from C++";

int join(const std::string &path) {
    auto connection = doorbell::connection::join(path);
    auto segment = connection.segment();
    auto theirs = connection.bell(0), ours = connection.bell(1);
    segment.write(0, hello, sizeof hello);
    theirs.ring();
    try {
        ours.wait();
    } catch (const doorbell::error &gone) {
        return gone.status() == DOORBELL_PEER_GONE ? 0 : 1;
    }
    return 1;
}

} // namespace

int main(int argc, char **argv) try {
    if (argc != 2) {
        std::cerr << "usage: meet PATH\n";
        return 2;
    }
    // Listens before the child can look for it.
    doorbell::offer offer;
    offer.payload = 64;
    auto host = std::make_unique<doorbell::host>(argv[1]);
    const pid_t child = fork();
    if (child == 0) {
        const int result = join(argv[1]);
        _exit(result);
    }
    doorbell::segment segment(offer);
    auto ours = segment.bell(0);
    {
        auto connection = host->accept(segment);
        using namespace std::chrono_literals;
        if (!ours.wait_for(60s))
            return 1;
        char text[sizeof hello];
        segment.read(0, text, sizeof text);
        std::cout << "process " << connection.peer().process << " says: " << text << '\n';
        if (std::string(text) != hello || ours.try_wait() || ours.wait_until(std::chrono::steady_clock::now()))
            return 1;
    } // Hangs up.
    int status = 0;
    waitpid(child, &status, 0);

    // What an error looks like.
    try {
        segment.write(1000, hello, sizeof hello);
        return 1;
    } catch (const doorbell::error &error) {
        if (error.status() != DOORBELL_INVALID_ARGUMENT)
            return 1;
        std::cout << error.what() << '\n';
    }
    // Messages, here between two ends in one process.
    doorbell::offer with_a_lane;
    with_a_lane.lanes = 1;
    doorbell::segment lanes(with_a_lane);
    {
        auto receiver = lanes.receiver(0);
        if (receiver.try_recv() || receiver.listen() || receiver.fd() < 0)
            return 1;
        auto sender = std::make_unique<doorbell::sender>(lanes.sender(0));
        sender->send("first");
        std::memcpy(sender->reserve(100), "second", 6);
        sender->commit(6);
        // Each is let go before the next is asked for.
        for (const char *expected : {"first", "second"})
            if (receiver.recv().value().str() != expected)
                return 1;
        sender.reset();
        if (receiver.recv())
            return 1;
    }
    // Many senders and one receiver; one publisher and many subscribers.
    {
        doorbell::offer with_lanes;
        with_lanes.lanes = 2;
        doorbell::segment segment(with_lanes);
        doorbell::gather gather;
        for (std::uint32_t lane : {0U, 1U})
            if (gather.add(segment, lane) != lane)
                return 1;
        if (gather.try_recv() || gather.listen() || gather.fds().size() != 2)
            return 1;
        for (std::uint32_t lane : {1U, 0U}) {
            segment.sender(lane).send("from " + std::to_string(lane));
            auto received = gather.recv();
            if (!received || received->lane != lane || received->message != "from " + std::to_string(lane))
                return 1;
        }
        if (gather.recv() || !gather.remove(0) || gather.remove(0))
            return 1;
    }
    {
        auto publisher = std::make_unique<doorbell::publisher>(256);
        auto patient = publisher->subscribe(doorbell::when_slow::hold_back);
        auto hasty = publisher->subscribe(doorbell::when_slow::gap);
        int published = 0;
        while (publisher->try_publish("message " + std::to_string(published)))
            published++;
        auto first = patient.recv();
        if (published == 0 || !first || first->missed != 0 || first->message != "message 0")
            return 1;
        for (int next = 1; next < published; next++)
            if (patient.recv().value().message != "message " + std::to_string(next))
                return 1;
        for (int more = 0; more < 100; more++) {
            publisher->publish("a longer message");
            if (patient.try_recv().value().message != "a longer message")
                return 1;
        }
        if (hasty.recv().value().missed == 0 || publisher->ended() || publisher->subscribers() != 2)
            return 1;
        publisher.reset();
        if (patient.recv())
            return 1;
    }
    // A channel between threads, and a service with a client, both in one thread here.
    {
        using namespace std::chrono_literals;
        auto [to, from] = doorbell::channel(4096);
        while (to.try_send(std::string(500, 'x')))
            continue;
        if (to.listen(500) || to.fd() < 0 || to.send_for(std::string(500, 'x'), 1ms))
            return 1;
        while (from.try_recv())
            continue;
        std::optional<doorbell::message> none;
        if (from.recv_for(1ms) || from.recv_until(0, none) != DOORBELL_TIMED_OUT || !to.listen(500))
            return 1;
        const std::string name = std::string(argv[1]) + ".service";
        auto service = doorbell::listen(name);
        auto client = std::thread([&name] {
            auto [to, from] = doorbell::connect(name, 60s);
            to.send("a question");
            if (from.recv().value().str() != "an answer")
                std::terminate();
        });
        const auto [who, question] = service.recv();
        if (question != "a question" || service.fd() < 0 || !service.send(who, "an answer"))
            return 1;
        client.join();
        if (service.recv_for(1ms) || service.path() != name)
            return 1;
    }
    // For no user: whoever comes is told so.
    {
        const std::string name = std::string(argv[1]) + ".nobodys";
        doorbell::listen_options for_nobody;
        for_nobody.users = {DOORBELL_USERS_LISTED, 0, nullptr};
        auto service = doorbell::listen(name, for_nobody);
        std::atomic<bool> refused = false;
        auto client = std::thread([&] {
            try {
                doorbell::join_options anyones;
                anyones.host = {DOORBELL_USERS_ANYONE, 0, nullptr};
                doorbell::connect(name, anyones, std::chrono::minutes(1));
            } catch (const doorbell::error &error) {
                refused = error.status() == DOORBELL_OTHER_USER;
            }
            if (!refused)
                std::terminate();
        });
        while (!refused)
            if (service.recv_for(std::chrono::milliseconds(1)))
                return 1;
        client.join();
    }
    // Any of several, and a bell as a file.
    doorbell::bell one, other;
    other.ring();
    if (doorbell::wait_any({&one, &other}) != std::size_t{1} || other.fd() < 0 || other.try_wait() != 1U)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
} catch (const doorbell::error &error) {
    std::cerr << doorbell_status_text(error.status()) << ": " << error.what() << '\n';
    return 1;
}
