/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * doorbell.hpp in coroutines of C++20, on any event loop that can watch a descriptor:
 *
 *     while (auto message = co_await doorbell::recv(loop, receiver))
 *         co_await doorbell::send(loop, sender, message->str());
 *
 * A loop is anything with two functions:
 *
 *     loop.when_readable(fd, call, with);  // once, when `fd` can be read, call(with), from the loop
 *     loop.forget(fd);                     // no more: what was asked for is not called any more
 *
 * A coroutine whose ends always have something gives way to the others of its thread now and then: a peer that sends without pause
 * keeps nobody out.
 *
 * `fd` belongs to the end: a loop never reads, writes or closes it. A loop of several threads keeps each coroutine to one at a
 * time, as a strand does. A coroutine that is destroyed while it waits forgets by itself.
 */
#ifndef DOORBELL_COROUTINE_HPP
#define DOORBELL_COROUTINE_HPP

#include "doorbell.hpp"

#include <concepts>
#include <coroutine>
#include <cerrno>
#include <exception>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

namespace doorbell {

template <typename Loop>
concept event_loop = requires(Loop &loop, int fd, void (*call)(void *), void *with) {
    loop.when_readable(fd, call, with);
    loop.forget(fd);
};

namespace detail {

/* So many results are given at once to the coroutines of a thread, before the loop gets its turn. */
inline constexpr unsigned most_at_once = 32;
inline thread_local unsigned given_at_once = 0;

/* A file that can be read at once: a loop calls back in its next turn. */
class ready_file {
public:
    ready_file() : fd_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (fd_ < 0)
            throw std::system_error(errno, std::generic_category(), "eventfd");
    }
    ready_file(ready_file &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    ready_file &operator=(ready_file &&) = delete;
    ~ready_file() {
        if (fd_ >= 0)
            close(fd_);
    }
    int fd() const noexcept { return fd_; }

private:
    int fd_;
};

/*
 * Waits until `Operation` is done. It has look(), which tries without waiting and keeps what came, or throws; listen(), after
 * which its files are readable once there is something, unless that is there now; files(); and take() for what came.
 */
template <event_loop Loop, typename Operation> class awaiting {
public:
    template <typename... Arguments>
    explicit awaiting(Loop &loop, Arguments &&...arguments) : loop_(loop), operation_{std::forward<Arguments>(arguments)...} {}
    /* The loop holds its address. */
    awaiting(const awaiting &) = delete;
    awaiting &operator=(const awaiting &) = delete;
    ~awaiting() { forget(); }

    bool await_ready() noexcept { return given_at_once < most_at_once && given(look()); }

    bool await_suspend(std::coroutine_handle<> waiting) {
        waiting_ = waiting;
        return given_at_once < most_at_once ? sleeps() : gives_way();
    }

    decltype(auto) await_resume() {
        if (failed_)
            std::rethrow_exception(failed_);
        return operation_.take();
    }

private:
    bool look() noexcept try {
        return operation_.look();
    } catch (...) {
        failed_ = std::current_exception();
        return true;
    }

    static bool given(bool something) noexcept {
        if (something)
            given_at_once++;
        return something;
    }

    /* Has the loop call when there is something. False if there was meanwhile. */
    bool sleeps() noexcept try {
        /* A hostile peer can be ready for ever without anything. */
        for (unsigned turn = 0; operation_.listen(); turn++) {
            if (given(look()))
                return false;
            if (turn == most_at_once)
                return gives_way();
        }
        ask(operation_.files());
        return true;
    } catch (...) {
        forget();
        failed_ = std::current_exception();
        return false;
    }

    /* Has the loop call in its next turn, before anything is received or sent. */
    bool gives_way() noexcept try {
        way_.emplace();
        ask({way_->fd()});
        return true;
    } catch (...) {
        forget();
        failed_ = std::current_exception();
        return false;
    }

    void ask(std::vector<int> files) {
        files_ = std::move(files);
        asked_ = 0;
        for (const int fd : files_) {
            loop_.when_readable(fd, readable, this);
            asked_++;
        }
    }

    static void readable(void *self) {
        awaiting &here = *static_cast<awaiting *>(self);
        here.forget();
        here.way_.reset();
        given_at_once = 0;
        /* A file is readable for no reason now and then. */
        if (here.look() || !here.sleeps())
            here.waiting_.resume();
    }

    void forget() noexcept {
        for (; asked_ > 0; asked_--)
            loop_.forget(files_[asked_ - 1]);
    }

    Loop &loop_;
    Operation operation_;
    std::coroutine_handle<> waiting_;
    std::exception_ptr failed_;
    std::vector<int> files_;
    std::optional<ready_file> way_;
    /* For so many of them the loop was asked. */
    std::size_t asked_ = 0;
};

/* A message of a receiver, a gather or a subscriber; nothing once nobody is left who could send one. */
template <typename End, typename Result> struct receiving {
    End &from;
    std::optional<Result> received = {};

    bool look() { return from.recv_until(0, received) != DOORBELL_TIMED_OUT; }
    bool listen() { return from.listen(); }
    std::vector<int> files() {
        if constexpr (requires { from.fds(); })
            return from.fds();
        else
            return {from.fd()};
    }
    std::optional<Result> take() { return std::move(received); }
};

/* A look that finds nothing has the files of a bell and a service wait for the next. */
template <typename End, typename Result, std::optional<Result> (End::*Look)()> struct hearing {
    End &from;
    std::optional<Result> received = {};

    bool look() { return (received = (from.*Look)()).has_value(); }
    bool listen() { return false; }
    std::vector<int> files() { return {from.fd()}; }
    Result take() { return std::move(*received); }
};

struct sending {
    sender &to;
    std::string_view message;

    bool look() { return to.try_send(message); }
    bool listen() { return to.listen(message.size()); }
    std::vector<int> files() { return {to.fd()}; }
    void take() {}
};

} // namespace detail

/* The next message, where it lies. Nothing once the sender has left; throws DOORBELL_PEER_GONE if it hung up or died. */
template <event_loop Loop> auto recv(Loop &loop, receiver &from) {
    return detail::awaiting<Loop, detail::receiving<receiver, message>>(loop, from);
}
/* The next message of any lane. Nothing when no sender is left; throws as gather::recv() does. */
template <event_loop Loop> auto recv(Loop &loop, gather &from) {
    return detail::awaiting<Loop, detail::receiving<gather, gathered>>(loop, from);
}
/* The next message that was published. Nothing once the publisher has left; throws as subscriber::recv() does. */
template <event_loop Loop> auto recv(Loop &loop, subscriber &from) {
    return detail::awaiting<Loop, detail::receiving<subscriber, published>>(loop, from);
}
/* The next message of any client. */
template <event_loop Loop> auto recv(Loop &loop, service &from) {
    return detail::awaiting<Loop, detail::hearing<service, heard, &service::try_recv>>(loop, from);
}
/* How many rings there were. */
template <event_loop Loop> auto wait(Loop &loop, bell &at) {
    return detail::awaiting<Loop, detail::hearing<bell, std::uint32_t, &bell::try_wait>>(loop, at);
}
/* Sends `message`, which lives until then, when there is room; throws as sender::send() does. */
template <event_loop Loop> auto send(Loop &loop, sender &to, std::string_view message) {
    return detail::awaiting<Loop, detail::sending>(loop, to, message);
}

} // namespace doorbell

#endif
