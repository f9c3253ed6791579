/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * doorbell.h for C++17: handles that free themselves, errors that are thrown, durations that have units.
 *
 * A deadline that passes is no error: what may find nothing returns an optional. Everything else that is not done
 * throws doorbell::error, whose status() tells what to do and whose what() tells a person.
 */
#ifndef DOORBELL_HPP
#define DOORBELL_HPP

#include "doorbell.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace doorbell {

/* What a call of the library reported. */
class error : public std::runtime_error {
public:
    explicit error(const doorbell_error &last)
        : std::runtime_error(last.message), status_(last.status), error_number_(last.error_number),
          peer_(last.peer), peer_process_(last.peer_process) {}

    doorbell_status status() const noexcept { return status_; }
    /* The errno behind it; 0 if there is none. */
    int error_number() const noexcept { return error_number_; }
    /* With DOORBELL_PEER_GONE: who went. */
    std::uint32_t peer() const noexcept { return peer_; }
    std::uint32_t peer_process() const noexcept { return peer_process_; }

private:
    doorbell_status status_;
    int error_number_;
    std::uint32_t peer_;
    std::uint32_t peer_process_;
};

namespace detail {

inline void check(doorbell_status status) {
    if (status != DOORBELL_OK)
        throw error(*doorbell_last_error());
}

/* Was there something? Throws if the call failed. */
inline bool came(doorbell_status status) {
    if (status == DOORBELL_TIMED_OUT)
        return false;
    check(status);
    return true;
}

/* Why there is nothing, if there is nothing: DOORBELL_TIMED_OUT or DOORBELL_CLOSED. Throws if the call failed. */
inline doorbell_status told(doorbell_status status) {
    if (status != DOORBELL_TIMED_OUT && status != DOORBELL_CLOSED)
        check(status);
    return status;
}

/* `message` becomes the next that `copy` copies; `last` is how long the one before was. It is kept until there is room. */
template <typename Copy> doorbell_status whole(std::string &message, std::size_t &last, Copy copy) {
    for (;;) {
        std::size_t size = 0;
        const doorbell_status status = copy(message.data(), message.size(), &size);
        if (status != DOORBELL_OK && status != DOORBELL_TOO_LONG)
            return told(status);
        message.resize(size);
        last = size;
        if (status == DOORBELL_OK)
            return status;
    }
}

template <typename Handle, void (*Free)(Handle *)> struct deleter {
    void operator()(Handle *handle) const noexcept { Free(handle); }
};

template <typename Handle, void (*Free)(Handle *)> using owned = std::unique_ptr<Handle, deleter<Handle, Free>>;

/* Calls `make(..., &handle)` and owns what it made. */
template <typename Owned, typename Make, typename... Arguments> Owned made(Make make, Arguments... arguments) {
    typename Owned::pointer handle = nullptr;
    check(make(arguments..., &handle));
    return Owned(handle);
}

/* libstdc++'s and libc++'s steady clock is CLOCK_MONOTONIC on Linux, in nanoseconds. */
inline std::uint64_t deadline(std::chrono::steady_clock::time_point at) {
    const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
    return since < 0 ? 0 : static_cast<std::uint64_t>(since);
}

template <typename Rep, typename Period> std::uint64_t after(std::chrono::duration<Rep, Period> time) {
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
    return doorbell_after(nanoseconds < 0 ? 0 : static_cast<std::uint64_t>(nanoseconds));
}

} // namespace detail

class sender;
class receiver;
/* Two ends: to send by, and to receive from. */
using ends = std::pair<sender, receiver>;

namespace detail {

template <typename Make, typename... Arguments> ends both(Make make, Arguments... arguments);

} // namespace detail

/* A way of waiting. */
enum class way : std::uint32_t {
    adaptive = DOORBELL_ADAPTIVE,
    futex = DOORBELL_FUTEX,
    spin = DOORBELL_SPIN,
    yield = DOORBELL_YIELD,
    eventfd = DOORBELL_EVENTFD,
};

/* A handle of a bell; see doorbell_bell. */
class bell {
public:
    /* For the threads of this process. */
    explicit bell(way by = way::adaptive, std::uint32_t eventfds = 1)
        : bell(detail::made<handle>(doorbell_bell_new, code(by), eventfds)) {}

    /* Shared with the children this process forks from now on. */
    static bell for_children(way by = way::adaptive, std::uint32_t eventfds = 1) {
        return bell(detail::made<handle>(doorbell_bell_new_for_children, code(by), eventfds));
    }

    /* Another handle, which has heard what this one has heard. */
    bell clone(way by = way::adaptive) const {
        return bell(detail::made<handle>(doorbell_bell_clone, get(), code(by)));
    }

    void ring() const noexcept { doorbell_bell_ring(get()); }

    /* Returns how many rings there were. */
    std::uint32_t wait() {
        std::uint32_t rings = 0;
        detail::check(doorbell_bell_wait(get(), &rings));
        return rings;
    }

    std::optional<std::uint32_t> wait_until(std::chrono::steady_clock::time_point at) {
        return wait_deadline(detail::deadline(at));
    }

    template <typename Rep, typename Period>
    std::optional<std::uint32_t> wait_for(std::chrono::duration<Rep, Period> time) {
        return wait_deadline(detail::after(time));
    }

    std::optional<std::uint32_t> try_wait() {
        std::uint32_t rings = 0;
        if (!detail::came(doorbell_bell_try_wait(get(), &rings)))
            return std::nullopt;
        return rings;
    }

    /* Makes this handle a file: poll it for reading, and call try_wait() when it is readable. */
    int fd() {
        int fd = -1;
        detail::check(doorbell_bell_fd(get(), &fd));
        return fd;
    }

    void set_partner(const bell &partner) { detail::check(doorbell_bell_set_partner(get(), partner.get())); }

    void set_interruptible(bool interruptible) {
        detail::check(doorbell_bell_set_interruptible(get(), interruptible));
    }

    doorbell_counts counts() const {
        doorbell_counts counts;
        detail::check(doorbell_bell_counts(get(), &counts));
        return counts;
    }

    const doorbell_bell *get() const noexcept { return handle_.get(); }

private:
    friend class segment;
    friend class connection;
    using handle = detail::owned<doorbell_bell, doorbell_bell_free>;

    explicit bell(handle made) : handle_(std::move(made)) {}

    static std::uint32_t code(way by) { return static_cast<std::uint32_t>(by); }

    std::optional<std::uint32_t> wait_deadline(std::uint64_t deadline) {
        std::uint32_t rings = 0;
        if (!detail::came(doorbell_bell_wait_deadline(get(), deadline, &rings)))
            return std::nullopt;
        return rings;
    }

    handle handle_;
};

/* Waits for a ring at any of `bells`. Returns the place of one that was rung; its try_wait() says how often. */
inline std::optional<std::size_t> wait_any(std::initializer_list<const bell *> bells,
                                           std::uint64_t deadline = DOORBELL_FOREVER) {
    std::vector<const doorbell_bell *> handles;
    for (const bell *each : bells)
        handles.push_back(each->get());
    std::size_t which = 0;
    if (!detail::came(doorbell_bell_wait_any(handles.data(), handles.size(), deadline, &which)))
        return std::nullopt;
    return which;
}

/* The sending end of a lane. */
class sender {
public:
    /* Waits while there is no room. */
    void send(const void *message, std::size_t length) {
        detail::check(doorbell_sender_send(get(), message, length, DOORBELL_FOREVER));
    }
    void send(std::string_view message) { send(message.data(), message.size()); }

    /* False if there is no room now. */
    bool try_send(const void *message, std::size_t length) {
        return detail::came(doorbell_sender_send(get(), message, length, 0));
    }
    bool try_send(std::string_view message) { return try_send(message.data(), message.size()); }
    /* False if there was no room in time. */
    template <typename Rep, typename Period>
    bool send_for(std::string_view message, std::chrono::duration<Rep, Period> time) {
        return detail::came(doorbell_sender_send(get(), message.data(), message.size(), detail::after(time)));
    }

    /* Readable when there is room, after listen() returned false. */
    int fd() {
        int fd = -1;
        detail::check(doorbell_sender_fd(get(), &fd));
        return fd;
    }
    /* Is there room for `length` bytes after all, or something to be told of the receiver? */
    bool listen(std::size_t length) {
        bool something = false;
        detail::check(doorbell_sender_listen(get(), length, &something));
        return something;
    }

    /* Room for a message of up to `most` bytes; write it there, then commit() or abandon(). */
    void *reserve(std::size_t most) {
        void *place = nullptr;
        detail::check(doorbell_sender_reserve(get(), most, DOORBELL_FOREVER, &place));
        return place;
    }
    void commit(std::size_t length) { detail::check(doorbell_sender_commit(get(), length)); }
    void abandon() { detail::check(doorbell_sender_abandon(get())); }

    std::uint64_t longest() const noexcept { return doorbell_sender_longest(get()); }

    const doorbell_sender *get() const noexcept { return handle_.get(); }

private:
    friend class segment;
    friend class connection;
    template <typename Make, typename... Arguments> friend ends detail::both(Make make, Arguments... arguments);
    using handle = detail::owned<doorbell_sender, doorbell_sender_free>;

    explicit sender(handle made) : handle_(std::move(made)) {}

    handle handle_;
};

/* A message where it lies in the ring; destroying it lets go of it. One at a time. */
class message {
public:
    const void *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    /* A copy, which a sender that is not trusted cannot change any more. */
    std::string str() const { return std::string(static_cast<const char *>(data_), size_); }

private:
    friend class receiver;
    struct release {
        void operator()(const doorbell_receiver *receiver) const noexcept { doorbell_receiver_release(receiver); }
    };

    message(const doorbell_receiver *receiver, const void *data, std::size_t size)
        : receiver_(receiver), data_(data), size_(size) {}

    std::unique_ptr<const doorbell_receiver, release> receiver_;
    const void *data_;
    std::size_t size_;
};

/* The receiving end of a lane. */
class receiver {
public:
    /* Nothing once the sender has left; throws DOORBELL_PEER_GONE if it hung up or died. */
    std::optional<message> recv() { return recv_until(DOORBELL_FOREVER); }
    /* Nothing if there is no message now, or the sender has left. */
    std::optional<message> try_recv() { return recv_until(0); }
    /* Nothing if none came in time, or the sender has left. */
    template <typename Rep, typename Period> std::optional<message> recv_for(std::chrono::duration<Rep, Period> time) {
        return recv_until(detail::after(time));
    }
    /* As the above; also says why there is nothing: DOORBELL_TIMED_OUT or DOORBELL_CLOSED. */
    doorbell_status recv_until(std::uint64_t deadline, std::optional<message> &received) {
        const void *data = nullptr;
        std::size_t size = 0;
        /* What is held is let go of first: else it would be received again. */
        received.reset();
        const doorbell_status status = detail::told(doorbell_receiver_recv(get(), deadline, &data, &size));
        if (status == DOORBELL_OK)
            received = message(get(), data, size);
        return status;
    }

    /* Readable when there is something to receive, after listen() returned false. */
    int fd() {
        int fd = -1;
        detail::check(doorbell_receiver_fd(get(), &fd));
        return fd;
    }
    bool listen() {
        bool something = false;
        detail::check(doorbell_receiver_listen(get(), &something));
        return something;
    }

    const doorbell_receiver *get() const noexcept { return handle_.get(); }

private:
    friend class segment;
    friend class connection;
    template <typename Make, typename... Arguments> friend ends detail::both(Make make, Arguments... arguments);
    using handle = detail::owned<doorbell_receiver, doorbell_receiver_free>;

    explicit receiver(handle made) : handle_(std::move(made)) {}

    std::optional<message> recv_until(std::uint64_t deadline) {
        std::optional<message> received;
        recv_until(deadline, received);
        return received;
    }

    handle handle_;
};

namespace detail {

template <typename Make, typename... Arguments> ends both(Make make, Arguments... arguments) {
    doorbell_sender *to = nullptr;
    doorbell_receiver *from = nullptr;
    check(make(arguments..., &to, &from));
    return {sender(sender::handle(to)), receiver(receiver::handle(from))};
}

} // namespace detail

/* A channel between two threads of this process, with a ring of at least `capacity` bytes. */
inline ends channel(std::uint64_t capacity) { return detail::both(doorbell_channel, capacity); }

/* Connects to the service `name`, which is waited for until `patience` is over. */
inline ends connect(const std::string &name, std::chrono::nanoseconds patience = std::chrono::nanoseconds(0)) {
    return detail::both(doorbell_connect, name.c_str(), detail::after(patience));
}
/* How a service listens: doorbell_listen_options, filled in. */
struct listen_options : doorbell_listen_options {
    listen_options() : doorbell_listen_options() { doorbell_listen_options_init(this); }
};

/* How a process joins a host, or connects to a service: doorbell_join_options, filled in. */
struct join_options : doorbell_join_options {
    join_options() : doorbell_join_options() { doorbell_join_options_init(this); }
};

/* As above, as `options` say. */
inline ends connect(const std::string &name, const join_options &options,
                    std::chrono::nanoseconds patience = std::chrono::nanoseconds(0)) {
    return detail::both(doorbell_connect_with, name.c_str(), &options, detail::after(patience));
}

/* What a service received: the client's number, which is never used again, and the message. */
struct heard {
    std::uint64_t client;
    std::string message;
};

/* A name, and the clients that come to it; see doorbell_listen(). What is wrong with a client ends that client, and is no
 * error. */
class service {
public:
    explicit service(const std::string &name) : handle_(detail::made<handle>(doorbell_listen, name.c_str())) {}
    service(const std::string &name, const listen_options &options)
        : handle_(detail::made<handle>(doorbell_listen_with, name.c_str(), &options)) {}

    /* Where it listens. */
    std::string path() const {
        char path[128];
        detail::check(doorbell_service_path(get(), path, sizeof path));
        return path;
    }

    /* The next message of any client. */
    heard recv() { return recv_until(DOORBELL_FOREVER).value(); }
    std::optional<heard> try_recv() { return recv_until(0); }
    template <typename Rep, typename Period> std::optional<heard> recv_for(std::chrono::duration<Rep, Period> time) {
        return recv_until(detail::after(time));
    }
    /* Never waits: false if the client has gone, or has no room because it does not take its answers. */
    bool send(std::uint64_t client, std::string_view message) { return send_until(client, message, 0); }
    /* As send(), but waits for room; nobody else is served meanwhile. */
    template <typename Rep, typename Period>
    bool send_for(std::uint64_t client, std::string_view message, std::chrono::duration<Rep, Period> time) {
        return send_until(client, message, detail::after(time));
    }

    /* The next client, for the caller alone: recv() does not hear of it. */
    ends accept() { return detail::both(doorbell_service_accept, get(), DOORBELL_FOREVER); }

    /* Readable when there may be something, after try_recv() found nothing. */
    int fd() const noexcept { return doorbell_service_fd(get()); }

    const doorbell_service *get() const noexcept { return handle_.get(); }

private:
    using handle = detail::owned<doorbell_service, doorbell_service_free>;

    bool send_until(std::uint64_t client, std::string_view message, std::uint64_t deadline) {
        const doorbell_status status =
            doorbell_service_send(get(), client, message.data(), message.size(), deadline);
        return status != DOORBELL_CLOSED && detail::came(status);
    }

    std::optional<heard> recv_until(std::uint64_t deadline) {
        heard next{0, std::string(last_, '\0')};
        const doorbell_status status = detail::whole(next.message, last_, [&](char *to, std::size_t room, std::size_t *size) {
            return doorbell_service_recv(get(), deadline, to, room, size, &next.client);
        });
        return status == DOORBELL_OK ? std::optional(std::move(next)) : std::nullopt;
    }

    handle handle_;
    /* As much room as the last message needed is made for the next. */
    std::size_t last_ = 0;
};

/* Listens at the service `name`. */
inline service listen(const std::string &name) { return service(name); }
inline service listen(const std::string &name, const listen_options &options) { return service(name, options); }

/* What a segment is made of: doorbell_offer, filled in. */
struct offer : doorbell_offer {
    offer() : doorbell_offer() { doorbell_offer_init(this); }
};

/* Bells of one mapping, with bytes beside them. */
class segment {
public:
    explicit segment(const offer &offer = doorbell::offer()) : handle_(detail::made<handle>(doorbell_segment_new, &offer)) {}

    class bell bell(std::uint32_t index, way by = way::adaptive) const {
        return doorbell::bell(
            detail::made<doorbell::bell::handle>(doorbell_segment_bell, get(), index, doorbell::bell::code(by)));
    }

    /* The ends of a lane, where all who share the segment are trusted. */
    class sender sender(std::uint32_t lane) const {
        return doorbell::sender(detail::made<doorbell::sender::handle>(doorbell_segment_sender, get(), lane));
    }
    class receiver receiver(std::uint32_t lane) const {
        return doorbell::receiver(detail::made<doorbell::receiver::handle>(doorbell_segment_receiver, get(), lane));
    }

    std::uint64_t payload_size() const noexcept { return doorbell_segment_payload_size(get()); }

    void write(std::uint64_t offset, const void *from, std::size_t length) {
        detail::check(doorbell_segment_write(get(), offset, static_cast<const std::uint8_t *>(from), length));
    }

    void read(std::uint64_t offset, void *to, std::size_t length) const {
        detail::check(doorbell_segment_read(get(), offset, static_cast<std::uint8_t *>(to), length));
    }

    const doorbell_segment *get() const noexcept { return handle_.get(); }

private:
    friend class connection;
    using handle = detail::owned<doorbell_segment, doorbell_segment_free>;

    explicit segment(handle made) : handle_(std::move(made)) {}

    handle handle_;
};

/* One peer met. Destroying it hangs up. */
class connection {
public:
    /* Meets the host that listens at `path`. */
    static connection join(const std::string &path, const join_options &options = {}) {
        return connection(detail::made<handle>(doorbell_join_with, path.c_str(), &options));
    }

    /* The child's part of a rendezvous with its parent. */
    static connection inherit(const join_options &options = {}) {
        return connection(detail::made<handle>(doorbell_inherit_with, &options));
    }

    /* Either part over a connected SOCK_SEQPACKET socket, which belongs to the connection from then on. */
    static connection host_over(int fd, const class segment &segment) {
        return connection(detail::made<handle>(doorbell_host_over, fd, segment.get()));
    }
    static connection join_over(int fd, const join_options &options = {}) {
        return connection(detail::made<handle>(doorbell_join_over_with, fd, &options));
    }

    class bell bell(std::uint32_t index, way by = way::adaptive) const {
        return doorbell::bell(
            detail::made<doorbell::bell::handle>(doorbell_connection_bell, get(), index, doorbell::bell::code(by)));
    }

    class sender sender(std::uint32_t lane) const {
        return doorbell::sender(detail::made<doorbell::sender::handle>(doorbell_connection_sender, get(), lane));
    }
    class receiver receiver(std::uint32_t lane) const {
        return doorbell::receiver(detail::made<doorbell::receiver::handle>(doorbell_connection_receiver, get(), lane));
    }

    class segment segment() const {
        return doorbell::segment(detail::made<doorbell::segment::handle>(doorbell_connection_segment, get()));
    }

    doorbell_peer peer() const {
        doorbell_peer peer;
        detail::check(doorbell_connection_peer(get(), &peer));
        return peer;
    }

    const doorbell_connection *get() const noexcept { return handle_.get(); }

private:
    friend class host;
    friend class pending;
    using handle = detail::owned<doorbell_connection, doorbell_connection_free>;

    explicit connection(handle made) : handle_(std::move(made)) {}

    handle handle_;
};

/* A path at which processes can meet this one. */
class host {
public:
    explicit host(const std::string &path) : handle_(detail::made<handle>(doorbell_host_bind, path.c_str())) {}
    /* For processes of `users`; the socket file gets the rights `mode`, if that is not negative. */
    host(const std::string &path, const doorbell_users &users, std::int32_t mode = -1)
        : handle_(detail::made<handle>(doorbell_host_bind_for, path.c_str(), &users, mode)) {}

    connection accept(const segment &segment) {
        return connection(detail::made<connection::handle>(doorbell_host_accept, get(), segment.get()));
    }

    /* Readable when a process wants to meet. */
    int fd() const noexcept { return doorbell_host_fd(get()); }

    const doorbell_host *get() const noexcept { return handle_.get(); }

private:
    using handle = detail::owned<doorbell_host, doorbell_host_free>;
    handle handle_;
};

/* A rendezvous with a child that is about to be started. */
class pending {
public:
    pending() : handle_(detail::made<handle>(doorbell_pending_new)) {}

    /* In the forked child, before exec. */
    void in_child() const { detail::check(doorbell_pending_in_child(get())); }

    connection meet(const segment &segment, std::uint32_t child) {
        return connection(detail::made<connection::handle>(doorbell_pending_meet, get(), segment.get(), child));
    }

    int fd() const noexcept { return doorbell_pending_fd(get()); }

    const doorbell_pending *get() const noexcept { return handle_.get(); }

private:
    using handle = detail::owned<doorbell_pending, doorbell_pending_free>;
    handle handle_;
};

/* What a gather received: from which of its lanes, and the message. */
struct gathered {
    std::size_t lane;
    std::string message;
};

/* The receiving ends of many lanes, of connections or of segments whose users are all trusted, but not of both. */
class gather {
public:
    gather() : handle_(detail::made<handle>(doorbell_gather_new)) {}

    /* The lane's number here. */
    std::size_t add(const connection &connection, std::uint32_t lane) {
        std::size_t number = 0;
        detail::check(doorbell_gather_add(get(), connection.get(), lane, &number));
        return number;
    }
    std::size_t add(const segment &segment, std::uint32_t lane) {
        std::size_t number = 0;
        detail::check(doorbell_gather_add_segment(get(), segment.get(), lane, &number));
        return number;
    }
    /* Was there one? */
    bool remove(std::size_t number) {
        bool removed = false;
        detail::check(doorbell_gather_remove(get(), number, &removed));
        return removed;
    }

    /* Nothing when no sender is left at any lane. Throws DOORBELL_PEER_GONE or DOORBELL_VIOLATION, once for each sender that
     * died or lied; the others go on. */
    std::optional<gathered> recv() { return recv_until(DOORBELL_FOREVER); }
    /* Nothing if there is no message now, or no sender is left. */
    std::optional<gathered> try_recv() { return recv_until(0); }
    /* As the above; also says why there is nothing: DOORBELL_TIMED_OUT or DOORBELL_CLOSED. */
    doorbell_status recv_until(std::uint64_t deadline, std::optional<gathered> &received) {
        std::size_t lane = 0, size = 0;
        const void *data = nullptr;
        received.reset();
        const doorbell_status status = detail::told(doorbell_gather_recv(get(), deadline, &lane, &data, &size));
        if (status == DOORBELL_OK) {
            received.emplace(gathered{lane, std::string(size, '\0')});
            detail::check(doorbell_gather_copy(get(), 0, &lane, received->message.data(), size, &size));
        }
        return status;
    }

    /* One of them is readable when there is something to receive, after listen() returned false. */
    std::vector<int> fds() {
        std::size_t count = 0;
        detail::check(doorbell_gather_fds(get(), nullptr, 0, &count));
        std::vector<int> fds(count);
        detail::check(doorbell_gather_fds(get(), fds.data(), fds.size(), &count));
        return fds;
    }
    bool listen() {
        bool something = false;
        detail::check(doorbell_gather_listen(get(), &something));
        return something;
    }

    const doorbell_gather *get() const noexcept { return handle_.get(); }

private:
    using handle = detail::owned<doorbell_gather, doorbell_gather_free>;

    std::optional<gathered> recv_until(std::uint64_t deadline) {
        std::optional<gathered> received;
        recv_until(deadline, received);
        return received;
    }

    handle handle_;
};

/* What happens to a subscriber that is too slow. */
enum class when_slow : std::uint32_t {
    hold_back = DOORBELL_HOLD_BACK,
    drop = DOORBELL_DROP,
    gap = DOORBELL_GAP,
};

/* What a subscriber received: how many messages it missed directly before, and the message. */
struct published {
    std::uint64_t missed;
    std::string message;
};

/* One subscription to a broadcast. Throws DOORBELL_DROPPED when it was too slow. */
class subscriber {
public:
    /* The publisher admits the same lane. */
    subscriber(const connection &connection, std::uint32_t lane)
        : handle_(detail::made<handle>(doorbell_connection_subscribe, connection.get(), lane)) {}

    /* Nothing once the publisher has left; throws DOORBELL_PEER_GONE if it hung up or died. */
    std::optional<published> recv() { return recv_until(DOORBELL_FOREVER); }
    /* Nothing if there is no message now, or the publisher has left. */
    std::optional<published> try_recv() { return recv_until(0); }
    /* As the above; also says why there is nothing: DOORBELL_TIMED_OUT or DOORBELL_CLOSED. */
    doorbell_status recv_until(std::uint64_t deadline, std::optional<published> &received) {
        published next{0, std::string(last_, '\0')};
        received.reset();
        const doorbell_status status = detail::whole(next.message, last_, [&](char *to, std::size_t room, std::size_t *size) {
            return doorbell_subscriber_copy(get(), deadline, to, room, size, &next.missed);
        });
        if (status == DOORBELL_OK)
            received = std::move(next);
        return status;
    }

    /* Readable when there is something to receive, after listen() returned false. */
    int fd() {
        std::int32_t fd = -1;
        detail::check(doorbell_subscriber_fd(get(), &fd));
        return fd;
    }
    bool listen() {
        bool something = false;
        detail::check(doorbell_subscriber_listen(get(), &something));
        return something;
    }

    const doorbell_subscriber *get() const noexcept { return handle_.get(); }

private:
    friend class publisher;
    using handle = detail::owned<doorbell_subscriber, doorbell_subscriber_free>;

    explicit subscriber(handle made) : handle_(std::move(made)) {}

    std::optional<published> recv_until(std::uint64_t deadline) {
        std::optional<published> received;
        recv_until(deadline, received);
        return received;
    }

    handle handle_;
    /* As much room as the last message needed is made for the next. */
    std::size_t last_ = 0;
};

/* A subscription that ended: DOORBELL_CLOSED, DOORBELL_PEER_GONE, DOORBELL_DROPPED or DOORBELL_VIOLATION. */
struct ended {
    std::uint64_t number;
    doorbell_status how;
};

/* The publishing end of a broadcast. */
class publisher {
public:
    /* The longest message takes about three eighths of `capacity` bytes. */
    explicit publisher(std::uint64_t capacity) : handle_(detail::made<handle>(doorbell_publisher_new, capacity)) {}

    /* Admits the peer, which subscribes to the same lane. Its number here. */
    std::uint64_t admit(const connection &connection, std::uint32_t lane, when_slow slow) {
        std::uint64_t number = 0;
        detail::check(doorbell_publisher_admit(get(), connection.get(), lane, static_cast<std::uint32_t>(slow), &number));
        return number;
    }

    /* A subscriber in this process. */
    class subscriber subscribe(when_slow slow) {
        return doorbell::subscriber(detail::made<doorbell::subscriber::handle>(
            doorbell_publisher_subscribe, get(), static_cast<std::uint32_t>(slow)));
    }

    /* Waits while a subscriber holds it back. */
    void publish(std::string_view message) {
        detail::check(doorbell_publisher_publish(get(), message.data(), message.size(), DOORBELL_FOREVER));
    }
    /* False if a subscriber holds it back now. */
    bool try_publish(std::string_view message) {
        return detail::came(doorbell_publisher_publish(get(), message.data(), message.size(), 0));
    }

    /* A subscription that ended and was not told yet. */
    std::optional<doorbell::ended> ended() {
        doorbell::ended ended{};
        if (!detail::came(doorbell_publisher_ended(get(), &ended.number, &ended.how)))
            return std::nullopt;
        return ended;
    }

    /* Whoever subscribes from now on is given the last `most` messages first, or as many of them as are there. */
    void set_history(std::size_t most) { detail::check(doorbell_publisher_set_history(get(), most)); }
    std::size_t subscribers() const noexcept { return doorbell_publisher_subscribers(get()); }
    std::uint64_t longest() const noexcept { return doorbell_publisher_longest(get()); }

    const doorbell_publisher *get() const noexcept { return handle_.get(); }

private:
    using handle = detail::owned<doorbell_publisher, doorbell_publisher_free>;
    handle handle_;
};

} // namespace doorbell

#endif
