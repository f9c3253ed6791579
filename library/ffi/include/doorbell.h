/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A bell in shared memory: one side rings, the other wakes up, between threads or processes, as cheaply as the machine
 * allows, and no ring is ever lost. Link with `pkg-config --libs doorbell`; C++ has doorbell.hpp beside this.
 *
 * What holds for all functions:
 *
 *  - A function that can fail returns a doorbell_status; doorbell_last_error() then says more. What a function hands
 *    out through a pointer is written only if it returns DOORBELL_OK.
 *  - Every handle is freed once, with the free function of its type; freeing NULL does nothing. Handles keep what they
 *    need: a bell may outlive the connection or segment it came from, and goes on hearing of deaths as long as the connection
 *    lives.
 *  - A NULL where a handle is needed is DOORBELL_INVALID_ARGUMENT. A pointer that is neither NULL nor valid is
 *    undefined, as everywhere in C.
 *  - Different handles may be used from different threads at once. So may one handle, but for freeing it; a bell in
 *    which one thread waits refuses another's wait with DOORBELL_IN_USE, and rings for everybody.
 *  - Strings are UTF-8, or paths as the system has them, and end with a zero byte.
 *  - Deadlines are nanoseconds on CLOCK_MONOTONIC; see doorbell_after().
 *  - After fork(), a child uses what was made for it (doorbell_bell_new_for_children) and clones made before the fork.
 *    All descriptors are close-on-exec.
 *  - No signal is blocked or handled by this library, and SIGPIPE is never raised.
 */

#ifndef DOORBELL_H
#define DOORBELL_H

/* Made by cbindgen from library/ffi/src; `cargo test --package doorbell-ffi` says how to make it anew. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Spin as long as it pays on this machine, then sleep: for almost everything.
 */
#define DOORBELL_ADAPTIVE 0

/**
 * Sleep on a futex at once: for rare events.
 */
#define DOORBELL_FUTEX 1

/**
 * Occupy the CPU: for a CPU of one's own.
 */
#define DOORBELL_SPIN 2

/**
 * Occupy the CPU, but let others go first.
 */
#define DOORBELL_YIELD 3

/**
 * Sleep in poll() on an eventfd of the bell.
 */
#define DOORBELL_EVENTFD 4

/**
 * A deadline that never comes.
 */
#define DOORBELL_FOREVER 18446744073709551615ull

/**
 * The publisher waits for this subscriber, until its deadline: for
 * those it depends on and trusts to go on.
 */
#define DOORBELL_HOLD_BACK 0

/**
 * The subscription of one that is too slow ends; it is told DOORBELL_DROPPED.
 */
#define DOORBELL_DROP 1

/**
 * One that is too slow misses messages, and is told how many.
 */
#define DOORBELL_GAP 2

/**
 * `handle` is a doorbell_bell, which is no file.
 */
#define DOORBELL_END_BELL 0

/**
 * `handle` is a doorbell_receiver, of which no message is held.
 */
#define DOORBELL_END_RECEIVER 1

/**
 * `handle` is a doorbell_gather, of which no message is held.
 */
#define DOORBELL_END_GATHER 2

/**
 * `handle` is a doorbell_subscriber.
 */
#define DOORBELL_END_SUBSCRIBER 3

/**
 * `handle` is a doorbell_service.
 */
#define DOORBELL_END_SERVICE 4

/**
 * `fd` is a descriptor, until it can be read, or is at its end.
 */
#define DOORBELL_END_READABLE 5

/**
 * `fd` is a descriptor, until it can be written.
 */
#define DOORBELL_END_WRITABLE 6

/**
 * This process's own user, and root.
 */
#define DOORBELL_USERS_SAME 0

/**
 * Anybody whom the rights of the socket file let through.
 */
#define DOORBELL_USERS_ANYONE 1

/**
 * Those of `listed` alone: root is not among them unless it is there.
 */
#define DOORBELL_USERS_LISTED 2

/**
 * How a call ended. Later releases may add values; none changes its number.
 */
typedef enum doorbell_status {
  /**
   * It did what it is for.
   */
  DOORBELL_OK = 0,
  /**
   * The deadline came first, or there was nothing and the call never waits. Not an error:
   * doorbell_last_error() is not changed.
   */
  DOORBELL_TIMED_OUT = 1,
  /**
   * A signal handler ran in the waiting thread; see doorbell_bell_set_interruptible().
   */
  DOORBELL_INTERRUPTED = 2,
  /**
   * The kernel reported that a peer closed its end or died. What
   * it had rung before was delivered first.
   */
  DOORBELL_PEER_GONE = 3,
  /**
   * All eventfd waiter slots of the bell are taken.
   */
  DOORBELL_NO_WAITER_SLOT = 4,
  /**
   * The kernel cannot do this; choose another way of waiting.
   */
  DOORBELL_UNSUPPORTED = 5,
  /**
   * A system call failed; `error_number` is its errno.
   */
  DOORBELL_SYSTEM = 6,
  /**
   * The peer broke the protocol: it is faulty or hostile. Free the connection.
   */
  DOORBELL_VIOLATION = 7,
  /**
   * The other side of a rendezvous hung up or said nothing in time.
   */
  DOORBELL_NO_ANSWER = 8,
  /**
   * The other side of a rendezvous cannot use what was offered.
   */
  DOORBELL_REFUSED = 9,
  /**
   * More bells or eventfds than can be handed over, or bells than can be waited for at once.
   */
  DOORBELL_TOO_MANY = 10,
  /**
   * The path or name has a living owner.
   */
  DOORBELL_OWNED = 11,
  /**
   * Nobody listens at the path, or nobody owns the name.
   */
  DOORBELL_NO_OWNER = 12,
  /**
   * The process was not started by one that offers a segment to inherit.
   */
  DOORBELL_NOTHING_INHERITED = 13,
  /**
   * The memory is of another layout version, or larger than can be laid out.
   */
  DOORBELL_LAYOUT = 14,
  /**
   * A NULL, an unknown number, or things that do not go together. The message names it.
   */
  DOORBELL_INVALID_ARGUMENT = 15,
  /**
   * Another thread is waiting with this handle; give each thread a clone.
   */
  DOORBELL_IN_USE = 16,
  /**
   * A mistake in this library. What the call was to do may be half done; free the handle.
   */
  DOORBELL_PANICKED = 17,
  /**
   * The other end of the lane was left. All that was sent has been received; another may attach.
   */
  DOORBELL_CLOSED = 18,
  /**
   * The message is longer than the lane takes, or than the memory it is to be copied to.
   */
  DOORBELL_TOO_LONG = 19,
  /**
   * Somebody is at this end of the lane.
   */
  DOORBELL_TAKEN = 20,
  /**
   * The segment has no such lane, or none at all, or one that shares its receiver with others
   * and has no receiving end of its own.
   */
  DOORBELL_NO_LANE = 21,
  /**
   * An end that lends memory out as it lies there, on a segment that somebody shares who is not
   * trusted: take the end at the connection.
   */
  DOORBELL_UNTRUSTED = 22,
  /**
   * The peer is not trusted, and memory of the segment is lent out by an end that was taken at
   * the segment: meet it on a segment of its own.
   */
  DOORBELL_LENT = 23,
  /**
   * The segment was joined, and this process has hung up on its
   * maker since, or was forked from the one that joined.
   */
  DOORBELL_HUNG_UP = 24,
  /**
   * The peer offers more memory than is taken from one who is not
   * trusted; or there is no memory for a message.
   */
  DOORBELL_TOO_LARGE = 25,
  /**
   * Memory in huge pages is not shared with peers who are not trusted: they can take it away.
   */
  DOORBELL_HUGE_PAGES = 26,
  /**
   * This subscriber of a broadcast was too slow, and the publisher does not wait for it.
   */
  DOORBELL_DROPPED = 27,
  /**
   * The other side is a process of a user with whom this side does not share memory.
   */
  DOORBELL_OTHER_USER = 28,
  /**
   * The end belongs to the process that this one was forked from:
   * take a child's ends in the child.
   */
  DOORBELL_FORKED = 29,
} doorbell_status;

/**
 * A handle of a bell. All handles of one bell hear every ring; each
 * remembers by itself which rings it has heard.
 *
 * A ring before the wait is remembered: the next wait returns at once. Two rings before the wait
 * are heard as two by one wait. A ring with nobody waiting makes no system call. When a peer dies,
 * its rings are heard first, and then every wait returns DOORBELL_PEER_GONE: once for each peer,
 * and again and again when nobody is left.
 *
 * What happened before a ring happened before the return of a wait that heard it.
 */
typedef struct doorbell_bell doorbell_bell;

/**
 * One peer met, and the segment shared with it. Freeing it hangs up, once the ends of lanes that
 * were taken over it, and the bells that hold a waiter slot, are freed too.
 */
typedef struct doorbell_connection doorbell_connection;

/**
 * The receiving ends of many lanes. Lanes are asked in turn; messages of one sender come in order.
 * One thread at a time: a second is refused with DOORBELL_IN_USE.
 */
typedef struct doorbell_gather doorbell_gather;

/**
 * A path at which processes can meet this one.
 */
typedef struct doorbell_host doorbell_host;

/**
 * The parent's end of a rendezvous with a child, until the child has been started.
 */
typedef struct doorbell_pending doorbell_pending;

/**
 * The publishing end of a broadcast. One thread at a time: a second
 * is refused with DOORBELL_IN_USE.
 */
typedef struct doorbell_publisher doorbell_publisher;

/**
 * The receiving end of a lane. One thread at a time: a second is refused with DOORBELL_IN_USE.
 */
typedef struct doorbell_receiver doorbell_receiver;

/**
 * Bells of one mapping, with bytes beside them. All that is written there can be changed by all
 * who share it, at any moment.
 */
typedef struct doorbell_segment doorbell_segment;

/**
 * Waits for unlike ends. Keep it between waits: it learns from them, and gives each end its turn.
 */
typedef struct doorbell_select doorbell_select;

/**
 * The sending end of a lane. One thread at a time: a second is refused with DOORBELL_IN_USE.
 */
typedef struct doorbell_sender doorbell_sender;

/**
 * A name, and the clients that came to it. One thread at a time: a
 * second is refused with DOORBELL_IN_USE.
 */
typedef struct doorbell_service doorbell_service;

/**
 * One subscription to a broadcast. One thread at a time: a second is refused with DOORBELL_IN_USE.
 */
typedef struct doorbell_subscriber doorbell_subscriber;

/**
 * What the waits of one handle did so far.
 */
typedef struct doorbell_counts {
  /**
   * Waits that ended while spinning.
   */
  uint64_t spun_and_hit;
  /**
   * Waits that spun their whole window and then slept.
   */
  uint64_t spun_in_vain;
  /**
   * Waits that slept.
   */
  uint64_t slept;
  /**
   * Times a sleeper was woken, or woke for no reason.
   */
  uint64_t woken;
} doorbell_counts;

/**
 * One of several messages, where it lies.
 */
typedef struct doorbell_bytes {
  /**
   * Where its first byte is.
   */
  const void *data;
  /**
   * How many there are.
   */
  size_t length;
} doorbell_bytes;

/**
 * What the last call of this thread that failed reports.
 */
typedef struct doorbell_error {
  /**
   * What the call returned.
   */
  enum doorbell_status status;
  /**
   * The errno behind it; 0 if there is none.
   */
  int32_t error_number;
  /**
   * With DOORBELL_PEER_GONE: which peer, by its number in the order of rendezvous. Else 0.
   */
  uint32_t peer;
  /**
   * With DOORBELL_PEER_GONE: its process number, 0 if it has none here. Else 0.
   */
  uint32_t peer_process;
  /**
   * What happened, with which value, and what to do next. Never NULL.
   */
  const char *message;
} doorbell_error;

/**
 * With whose processes memory is shared. All zero is DOORBELL_USERS_SAME.
 *
 * The kernel shows users that have no number in this user namespace as one, 65534 as a rule. They
 * may be anybody, and are none of DOORBELL_USERS_SAME nor of `listed`.
 */
typedef struct doorbell_users {
  /**
   * DOORBELL_USERS_SAME, or another.
   */
  uint32_t kind;
  /**
   * How many numbers `listed` has.
   */
  uint32_t count;
  /**
   * Numbers of users; read during the call. NULL if there are none.
   */
  const uint32_t *listed;
} doorbell_users;

/**
 * How a service listens. doorbell_listen_options_init() fills it in; change what should differ.
 */
typedef struct doorbell_listen_options {
  /**
   * The bytes of the ring in either direction, for each client: 65536. The longest message takes
   * three eighths of it.
   */
  uint64_t capacity;
  /**
   * How many clients at most are there at once: 1024. Others are turned away.
   */
  uint64_t most_clients;
  /**
   * Whose processes may be clients: DOORBELL_USERS_SAME.
   */
  struct doorbell_users users;
  /**
   * The rights of the socket file; those that follow from `users` if that is negative (-1): 0600
   * for DOORBELL_USERS_SAME, else 0666.
   */
  int32_t mode;
  /**
   * Zero.
   */
  uint64_t reserved[4];
} doorbell_listen_options;

/**
 * How a process joins a host, or connects to a service. doorbell_join_options_init() fills it in;
 * change what should differ.
 */
typedef struct doorbell_join_options {
  /**
   * How many bytes of memory are taken from it: 1 GiB. DOORBELL_TOO_LARGE if it offers more.
   */
  uint64_t most_memory;
  /**
   * How many eventfds are taken from it: 252. DOORBELL_TOO_MANY if it offers more.
   */
  uint32_t most_eventfds;
  /**
   * How many nanoseconds a busy host is waited for: 30 seconds.
   */
  uint64_t patience;
  /**
   * Whose process it may be: DOORBELL_USERS_SAME. Of one over a
   * socket or from a parent nothing is asked.
   */
  struct doorbell_users host;
  /**
   * Zero.
   */
  uint64_t reserved[4];
} doorbell_join_options;

/**
 * What the side that makes the memory puts into it.
 * doorbell_offer_init() fills it in; change what should differ.
 */
typedef struct doorbell_offer {
  /**
   * How many bells: 2, one for each direction. With lanes it says nothing: they have their own.
   */
  uint32_t bells;
  /**
   * How many eventfd waiter slots each bell has: 2. At most 8; of all bells together a joiner in
   * C takes 252. A lane has two bells.
   */
  uint32_t eventfds;
  /**
   * How many bytes beside the bells: 0. With lanes it says nothing.
   */
  uint64_t payload;
  /**
   * How many lanes for messages: 0. Each has one sender and one
   * receiver; two make a conversation.
   */
  uint32_t lanes;
  /**
   * How many bytes the ring of each lane has: 65536. Rounded up to a power of two; the longest
   * message takes three eighths of it.
   */
  uint64_t lane_capacity;
  /**
   * Wish: 2 MiB pages from the machine's pool. Such a segment cannot be shared over a
   * connection, whose peer is not trusted: DOORBELL_HUGE_PAGES.
   */
  bool huge_pages;
  /**
   * Wish: never swapped out.
   */
  bool locked;
  /**
   * Wish: every page there before the first use.
   */
  bool populated;
  /**
   * Wish: on this NUMA node only; -1 for none.
   */
  int32_t numa_node;
  /**
   * Zero.
   */
  uint64_t reserved[4];
} doorbell_offer;

/**
 * Who is at the other end, as the kernel says.
 */
typedef struct doorbell_peer {
  /**
   * Its number in the order of this process's rendezvous.
   */
  uint32_t number;
  /**
   * Its process number; 0 if it has none in this PID namespace.
   */
  uint32_t process;
  /**
   * The user it ran as when it connected.
   */
  uint32_t user;
  /**
   * The group it ran as when it connected.
   */
  uint32_t group;
  /**
   * A descriptor of the process, which belongs to the connection; -1 if the kernel has none to
   * give (before Linux 6.5).
   */
  int32_t pidfd;
} doorbell_peer;

/**
 * One of the ends of a doorbell_select_wait().
 */
typedef struct doorbell_end {
  /**
   * What it is: DOORBELL_END_BELL and so on.
   */
  uint32_t kind;
  /**
   * The descriptor, if it is one.
   */
  int32_t fd;
  /**
   * The handle, if it is none.
   */
  const void *handle;
} doorbell_end;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a bell for the threads of this process, with `eventfds` (at most 8) eventfd waiter slots:
 * as many handles can wait with DOORBELL_EVENTFD or become files.
 */
enum doorbell_status doorbell_bell_new(uint32_t way,
                                       uint32_t eventfds,
                                       struct doorbell_bell **bell);

/**
 * Makes a bell that this process shares with the children it forks from
 * now on. Clone the handle before the fork and use one clone on each side.
 * Neither side is told of the other's death: that takes a rendezvous.
 */
enum doorbell_status doorbell_bell_new_for_children(uint32_t way,
                                                    uint32_t eventfds,
                                                    struct doorbell_bell **bell);

/**
 * Makes another handle of the same bell, which waits by `way` and
 * has heard what this one has heard.
 */
enum doorbell_status doorbell_bell_clone(const struct doorbell_bell *bell,
                                         uint32_t way,
                                         struct doorbell_bell **clone);

/**
 * Frees a handle. Nobody waits with it.
 */
void doorbell_bell_free(struct doorbell_bell *bell);

/**
 * Rings. Every handle of the bell hears it; those who sleep are woken. One locked addition and one
 * load when nobody sleeps, else a system call once per burst. From any thread, at any time; not in
 * a signal handler that may interrupt a call of this library. Ringing NULL does nothing.
 */
void doorbell_bell_ring(const struct doorbell_bell *bell);

/**
 * Waits for a ring this handle has not heard, and says how many there were (`rings` may be NULL).
 */
enum doorbell_status doorbell_bell_wait(const struct doorbell_bell *bell, uint32_t *rings);

/**
 * As doorbell_bell_wait(), but not beyond `deadline`: DOORBELL_TIMED_OUT if no ring came. A
 * deadline that has passed only looks.
 */
enum doorbell_status doorbell_bell_wait_deadline(const struct doorbell_bell *bell,
                                                 uint64_t deadline,
                                                 uint32_t *rings);

/**
 * Takes the rings that came since this handle last heard any;
 * DOORBELL_TIMED_OUT if there were none. Never waits.
 *
 * On a handle that is a file, this makes the file unreadable until the next ring: call it whenever
 * poll() or epoll says that the file is readable, which may be for no reason.
 */
enum doorbell_status doorbell_bell_try_wait(const struct doorbell_bell *bell, uint32_t *rings);

/**
 * Waits for a ring at any of `count` bells, or for `deadline`. `which`
 * becomes the place of one that was rung; doorbell_bell_try_wait()
 * then says how often. All handles must wait in the same way.
 */
enum doorbell_status doorbell_bell_wait_any(const struct doorbell_bell *const *bells,
                                            size_t count,
                                            uint64_t deadline,
                                            size_t *which);

/**
 * Makes this handle a file for poll(), epoll and event loops: `fd` is readable from a ring on
 * until doorbell_bell_try_wait(). It belongs to the handle: never read, write or close it. Once
 * for each handle; waiting with the handle is an error from then on. Takes an eventfd waiter slot:
 * DOORBELL_NO_WAITER_SLOT if all are taken.
 */
enum doorbell_status doorbell_bell_fd(const struct doorbell_bell *bell, int32_t *fd);

/**
 * Says that whoever rings `bell` waits at `partner` otherwise: an
 * adaptive wait does not spin while it sleeps there.
 */
enum doorbell_status doorbell_bell_set_partner(const struct doorbell_bell *bell,
                                               const struct doorbell_bell *partner);

/**
 * Says whether a signal handler that runs in the waiting thread ends a sleep with
 * DOORBELL_INTERRUPTED. Without it, waits go on. A signal just before the sleep does not end it: a
 * program that must not miss one also has a deadline, or polls the file with ppoll(). Nor need a
 * handler end it that was installed with SA_RESTART, as signal() does it: in a wait without a
 * deadline the kernel goes back to sleep after it. Use sigaction() without that.
 */
enum doorbell_status doorbell_bell_set_interruptible(const struct doorbell_bell *bell,
                                                     bool interruptible);

/**
 * Reads the counters of a handle, which `doorbell top` shows too.
 */
enum doorbell_status doorbell_bell_counts(const struct doorbell_bell *bell,
                                          struct doorbell_counts *counts);

/**
 * The deadline `nanoseconds` from now; DOORBELL_FOREVER if that is beyond the clock.
 */
uint64_t doorbell_after(uint64_t nanoseconds);

/**
 * Makes a log of at least `capacity` bytes, without subscribers. The
 * longest message takes about three eighths of it.
 */
enum doorbell_status doorbell_publisher_new(uint64_t capacity,
                                            struct doorbell_publisher **publisher);

/**
 * Ends all subscriptions. Each subscriber gets what was published, and is then told.
 */
void doorbell_publisher_free(struct doorbell_publisher *publisher);

/**
 * Admits the peer, which calls doorbell_connection_subscribe() with the same `lane` of the segment
 * they share. It receives what is published from now on. `slow` is DOORBELL_HOLD_BACK,
 * DOORBELL_DROP or DOORBELL_GAP; `number` becomes the subscriber's number here. The connection may
 * be freed: the connection is kept until the subscription ends.
 */
enum doorbell_status doorbell_publisher_admit(const struct doorbell_publisher *publisher,
                                              const struct doorbell_connection *connection,
                                              uint32_t lane,
                                              uint32_t slow,
                                              uint64_t *number);

/**
 * Makes a subscriber of this process, which may be given to another thread. It receives what is
 * published from now on. `slow` is DOORBELL_HOLD_BACK, DOORBELL_DROP or DOORBELL_GAP.
 */
enum doorbell_status doorbell_publisher_subscribe(const struct doorbell_publisher *publisher,
                                                  uint32_t slow,
                                                  struct doorbell_subscriber **subscriber);

/**
 * How many subscribers there are; 0 for NULL or while another thread uses the handle.
 */
size_t doorbell_publisher_subscribers(const struct doorbell_publisher *publisher);

/**
 * Gives whoever subscribes from now on the last `most` messages first, or as many of them as the
 * log still has: 0, if this is not called.
 */
enum doorbell_status doorbell_publisher_set_history(const struct doorbell_publisher *publisher,
                                                    size_t most);

/**
 * The longest message; 0 for NULL or while another thread uses the handle.
 */
uint64_t doorbell_publisher_longest(const struct doorbell_publisher *publisher);

/**
 * Publishes `length` bytes as one message. Waits while a subscriber that may do so holds it back,
 * until `deadline`: then DOORBELL_TIMED_OUT. The end of a subscription fails no publication;
 * doorbell_publisher_ended() tells of it.
 */
enum doorbell_status doorbell_publisher_publish(const struct doorbell_publisher *publisher,
                                                const void *message,
                                                size_t length,
                                                uint64_t deadline);

/**
 * A subscription that ended, each once: DOORBELL_TIMED_OUT if there is none that was not told.
 * `number` becomes the subscriber's number, and `how` DOORBELL_CLOSED if it left,
 * DOORBELL_PEER_GONE if it hung up or died, DOORBELL_DROPPED if it was too slow,
 * DOORBELL_VIOLATION if it broke the protocol.
 */
enum doorbell_status doorbell_publisher_ended(const struct doorbell_publisher *publisher,
                                              uint64_t *number,
                                              enum doorbell_status *how);

/**
 * Subscribes at the peer, which calls doorbell_publisher_admit() with the same `lane` of the
 * segment they share; waits for that for up to 30 seconds. The connection may be freed: the
 * subscription keeps the connection.
 */
enum doorbell_status doorbell_connection_subscribe(const struct doorbell_connection *connection,
                                                   uint32_t lane,
                                                   struct doorbell_subscriber **subscriber);

/**
 * Ends the subscription.
 */
void doorbell_subscriber_free(struct doorbell_subscriber *subscriber);

/**
 * Copies the next message to `to`, where `size` bytes are. Waits while there is none, until
 * `deadline`: then DOORBELL_TIMED_OUT. `length` becomes the message's length and `missed` how many
 * were missed directly before it. If the length is more than `size`, nothing is copied, the
 * message is kept for the next call, and both are written: DOORBELL_TOO_LONG. DOORBELL_CLOSED,
 * DOORBELL_PEER_GONE or DOORBELL_DROPPED when the subscription has ended.
 */
enum doorbell_status doorbell_subscriber_copy(const struct doorbell_subscriber *subscriber,
                                              uint64_t deadline,
                                              void *to,
                                              size_t size,
                                              size_t *length,
                                              uint64_t *missed);

/**
 * A file for poll(), epoll and event loops. It is readable when there is something to receive,
 * after doorbell_subscriber_listen() said that there was nothing. It belongs to the handle: never
 * read, write or close it.
 */
enum doorbell_status doorbell_subscriber_fd(const struct doorbell_subscriber *subscriber,
                                            int32_t *fd);

/**
 * Before going back to the event loop: is there something to receive after all? If not, the file
 * is unreadable until there is. A message that DOORBELL_TOO_LONG left behind is something, but
 * makes no file readable: receive it first.
 */
enum doorbell_status doorbell_subscriber_listen(const struct doorbell_subscriber *subscriber,
                                                bool *something);

/**
 * Takes the sending end of lane number `lane` of the segment shared with the peer, who need not be
 * trusted. The connection may be freed: the end keeps the connection.
 */
enum doorbell_status doorbell_connection_sender(const struct doorbell_connection *connection,
                                                uint32_t lane,
                                                struct doorbell_sender **sender);

/**
 * Takes the sending end of lane number `lane` of a segment whose other users are all trusted:
 * threads of this process, forked children.
 */
enum doorbell_status doorbell_segment_sender(const struct doorbell_segment *segment,
                                             uint32_t lane,
                                             struct doorbell_sender **sender);

/**
 * Leaves the lane. The receiver gets all that was sent, and is then told.
 */
void doorbell_sender_free(struct doorbell_sender *sender);

/**
 * The longest message the lane takes; 0 for NULL or while another thread uses the handle.
 */
uint64_t doorbell_sender_longest(const struct doorbell_sender *sender);

/**
 * Sends `length` bytes as one message. Waits while there is no room, until `deadline`: then
 * DOORBELL_TIMED_OUT. 0 does not wait, DOORBELL_FOREVER waits for ever. DOORBELL_CLOSED if the
 * receiver has left, DOORBELL_PEER_GONE if its process has; another may come.
 */
enum doorbell_status doorbell_sender_send(const struct doorbell_sender *sender,
                                          const void *message,
                                          size_t length,
                                          uint64_t deadline);

/**
 * Adds `length` bytes as one message to a batch: a receiver that is awake finds it at once, and
 * one that sleeps is woken by doorbell_sender_ring(), once for all. DOORBELL_TIMED_OUT if there is
 * no room: ring, and wait in doorbell_sender_send().
 */
enum doorbell_status doorbell_sender_push(const struct doorbell_sender *sender,
                                          const void *message,
                                          size_t length);

/**
 * Wakes the receiver for what was pushed, if it sleeps.
 */
enum doorbell_status doorbell_sender_ring(const struct doorbell_sender *sender);

/**
 * Makes room for a message of up to `most` bytes and says where; write it there and call
 * doorbell_sender_commit() or doorbell_sender_abandon(). Waits as doorbell_sender_send() does. A
 * receiver that is not trusted can write there too: do not read back what was written.
 */
enum doorbell_status doorbell_sender_reserve(const struct doorbell_sender *sender,
                                             size_t most,
                                             uint64_t deadline,
                                             void **message);

/**
 * Sends the first `length` bytes of the reserved message.
 */
enum doorbell_status doorbell_sender_commit(const struct doorbell_sender *sender, size_t length);

/**
 * Gives the reserved room back; the receiver sees nothing of it.
 */
enum doorbell_status doorbell_sender_abandon(const struct doorbell_sender *sender);

/**
 * A file for poll(), epoll and event loops. It is readable when there is room, or the receiver has
 * gone, after doorbell_sender_listen() said that there was none. It belongs to the handle: never
 * read, write or close it.
 */
enum doorbell_status doorbell_sender_fd(const struct doorbell_sender *sender, int32_t *fd);

/**
 * Before going back to the event loop: is there room for a message of
 * `length` bytes after all, or something to be told of the receiver? If
 * not, the file is unreadable until there is. Rings for what was pushed.
 */
enum doorbell_status doorbell_sender_listen(const struct doorbell_sender *sender,
                                            size_t length,
                                            bool *something);

/**
 * As doorbell_bell_set_interruptible(), for waits for room.
 */
enum doorbell_status doorbell_sender_set_interruptible(const struct doorbell_sender *sender,
                                                       bool interruptible);

/**
 * Takes the receiving end of lane number `lane` of the segment shared with the peer, who need not
 * be trusted. The connection may be freed: the end keeps the connection.
 */
enum doorbell_status doorbell_connection_receiver(const struct doorbell_connection *connection,
                                                  uint32_t lane,
                                                  struct doorbell_receiver **receiver);

/**
 * Takes the receiving end of lane number `lane` of a segment whose other users are all trusted:
 * threads of this process, forked children.
 */
enum doorbell_status doorbell_segment_receiver(const struct doorbell_segment *segment,
                                               uint32_t lane,
                                               struct doorbell_receiver **receiver);

/**
 * Leaves the lane. What was not received stays for the next receiver.
 */
void doorbell_receiver_free(struct doorbell_receiver *receiver);

/**
 * Receives the next message where it lies: `message` and `length` say where, until
 * doorbell_receiver_release(); until then the same message is received again. Waits while there is
 * none, until `deadline`: then DOORBELL_TIMED_OUT. 0 does not wait, DOORBELL_FOREVER waits for
 * ever. DOORBELL_CLOSED or DOORBELL_PEER_GONE when all that was sent has been received and the
 * sender has left, or has died or hung up without leaving; another may come.
 *
 * A sender that is not trusted may be writing there at this moment: copy first what you check
 * (doorbell_receiver_copy() does).
 */
enum doorbell_status doorbell_receiver_recv(const struct doorbell_receiver *receiver,
                                            uint64_t deadline,
                                            const void **message,
                                            size_t *length);

/**
 * Receives several messages, each where it lies: as many as are there, and `most` at most, of
 * which `count` were written to `messages`. All are held until doorbell_receiver_release(), and
 * nothing else is received before. Waits for the first as doorbell_receiver_recv() does; the
 * sender gets their room when the receiver is used the next time. One who is not trusted may be
 * writing there: copy first what you check.
 */
enum doorbell_status doorbell_receiver_recv_batch(const struct doorbell_receiver *receiver,
                                                  uint64_t deadline,
                                                  struct doorbell_bytes *messages,
                                                  size_t most,
                                                  size_t *count);

/**
 * Lets go of the message that was received, or of all that were, so
 * that the sender can write there again.
 */
enum doorbell_status doorbell_receiver_release(const struct doorbell_receiver *receiver);

/**
 * Copies the next message to `to`, where `size` bytes are, and lets go of it. Waits as
 * doorbell_receiver_recv() does. `length` becomes the message's length. If that is more than
 * `size`, nothing is copied and the message stays: DOORBELL_TOO_LONG, and `length` is written.
 */
enum doorbell_status doorbell_receiver_copy(const struct doorbell_receiver *receiver,
                                            uint64_t deadline,
                                            void *to,
                                            size_t size,
                                            size_t *length);

/**
 * A file for poll(), epoll and event loops. It is readable when there is something to receive,
 * after doorbell_receiver_listen() said that there was nothing. It belongs to the handle: never
 * read, write or close it.
 */
enum doorbell_status doorbell_receiver_fd(const struct doorbell_receiver *receiver, int32_t *fd);

/**
 * Before going back to the event loop: is there something to receive after all? If not, the file
 * is unreadable until there is.
 */
enum doorbell_status doorbell_receiver_listen(const struct doorbell_receiver *receiver,
                                              bool *something);

/**
 * Waits until at least `bytes` bytes of records are there (a message's length, rounded up to
 * eight, and eight more), at most a quarter of the ring. What the sender passes by at the end of
 * the ring counts: there may be fewer messages than that, or none. The sender makes no system call
 * before. DOORBELL_TIMED_OUT if they are not there by `deadline`, or the sender has gone: what is
 * there is received as usual.
 */
enum doorbell_status doorbell_receiver_wait_for_bytes(const struct doorbell_receiver *receiver,
                                                      uint64_t bytes,
                                                      uint64_t deadline);

/**
 * As doorbell_bell_set_interruptible(), for waits for messages.
 */
enum doorbell_status doorbell_receiver_set_interruptible(const struct doorbell_receiver *receiver,
                                                         bool interruptible);

/**
 * What the last call of this thread that failed reports. Successful calls do not change it. It is
 * valid until the next call of this thread that fails, or the thread's end. Never NULL.
 */
const struct doorbell_error *doorbell_last_error(void);

/**
 * What a status means, in a few words. For any number: one that is unknown is called so.
 */
const char *doorbell_status_text(int32_t status);

/**
 * Makes a gather without lanes. It takes lanes of connections, or
 * lanes of segments, but not both at a time.
 */
enum doorbell_status doorbell_gather_new(struct doorbell_gather **gather);

/**
 * Adds lane number `lane` of the segment shared with the peer, who need not be trusted if the
 * segment is shared with nobody else. `number` becomes the lane's number here. The connection may
 * be freed: the connection is kept until the lane is removed.
 */
enum doorbell_status doorbell_gather_add(const struct doorbell_gather *gather,
                                         const struct doorbell_connection *connection,
                                         uint32_t lane,
                                         size_t *number);

/**
 * As doorbell_gather_add(), of a segment whose other users are all trusted: threads of this
 * process, forked children.
 */
enum doorbell_status doorbell_gather_add_segment(const struct doorbell_gather *gather,
                                                 const struct doorbell_segment *segment,
                                                 uint32_t lane,
                                                 size_t *number);

/**
 * Leaves the lane that has this number here, which may be given to the next that is added.
 * `removed` says whether there was one.
 */
enum doorbell_status doorbell_gather_remove(const struct doorbell_gather *gather,
                                            size_t number,
                                            bool *removed);

/**
 * Leaves all lanes. What was not received stays for the next receivers.
 */
void doorbell_gather_free(struct doorbell_gather *gather);

/**
 * Receives the next message of any lane where it lies, as doorbell_receiver_recv() does; `lane`
 * becomes the lane's number. When a sender dies or lies, its end is told once, with the lane's
 * number in `lane`, and the other lanes go on. DOORBELL_CLOSED when no sender is left at any lane.
 * `lane` is written with every result: SIZE_MAX if it concerns no lane.
 */
enum doorbell_status doorbell_gather_recv(const struct doorbell_gather *gather,
                                          uint64_t deadline,
                                          size_t *lane,
                                          const void **message,
                                          size_t *length);

/**
 * Copies the next message of any lane to `to`, where `size` bytes are, and lets go of it:
 * doorbell_gather_recv() and doorbell_receiver_copy() in one.
 */
enum doorbell_status doorbell_gather_copy(const struct doorbell_gather *gather,
                                          uint64_t deadline,
                                          size_t *lane,
                                          void *to,
                                          size_t size,
                                          size_t *length);

/**
 * Lets go of the message that was received, so that its sender can write there again.
 */
enum doorbell_status doorbell_gather_release(const struct doorbell_gather *gather);

/**
 * The files of which one is readable when there is something to receive,
 * after doorbell_gather_listen() said that there was nothing: up to
 * `room` of them are written to `fds`, and how many there are to `count`.
 * Adding and removing lanes changes them. See doorbell_receiver_fd().
 */
enum doorbell_status doorbell_gather_fds(const struct doorbell_gather *gather,
                                         int32_t *fds,
                                         size_t room,
                                         size_t *count);

/**
 * Before going back to the event loop: is there something to receive after all? If not, the files
 * are unreadable until there is.
 */
enum doorbell_status doorbell_gather_listen(const struct doorbell_gather *gather, bool *something);

/**
 * As doorbell_bell_set_interruptible(), for waits for messages.
 */
enum doorbell_status doorbell_gather_set_interruptible(const struct doorbell_gather *gather,
                                                       bool interruptible);

/**
 * Fills in the options of a service that says nothing. NULL is left alone.
 */
void doorbell_listen_options_init(struct doorbell_listen_options *options);

/**
 * Fills in the options of a joiner that says nothing. NULL is left alone.
 */
void doorbell_join_options_init(struct doorbell_join_options *options);

/**
 * Fills in an offer: two bells with two eventfd waiter slots each,
 * and nothing beside them. NULL is left alone.
 */
void doorbell_offer_init(struct doorbell_offer *offer);

/**
 * Makes the memory that `offer` asks for; NULL asks for what doorbell_offer_init() fills in.
 */
enum doorbell_status doorbell_segment_new(const struct doorbell_offer *offer,
                                          struct doorbell_segment **segment);

/**
 * Frees a handle of a segment.
 */
void doorbell_segment_free(struct doorbell_segment *segment);

/**
 * Makes a handle of bell number `index`, which waits by `way`. It has heard all rings so far: make
 * it before the other side can ring.
 */
enum doorbell_status doorbell_segment_bell(const struct doorbell_segment *segment,
                                           uint32_t index,
                                           uint32_t way,
                                           struct doorbell_bell **bell);

/**
 * Which wishes about memory could not be granted, and why: one line each, cut to `size` bytes with
 * the zero byte. `refused` becomes their number.
 */
enum doorbell_status doorbell_segment_refused(const struct doorbell_segment *segment,
                                              char *text,
                                              size_t size,
                                              size_t *refused);

/**
 * How many bytes lie beside the bells; 0 for NULL.
 */
uint64_t doorbell_segment_payload_size(const struct doorbell_segment *segment);

/**
 * Copies `length` bytes into the memory beside the bells, `offset` bytes from its beginning. Ring
 * afterwards to say so. Who reads meanwhile may see a part: agree on who writes when.
 */
enum doorbell_status doorbell_segment_write(const struct doorbell_segment *segment,
                                            uint64_t offset,
                                            const uint8_t *from,
                                            size_t length);

/**
 * Copies `length` bytes out of the memory beside the bells, once.
 */
enum doorbell_status doorbell_segment_read(const struct doorbell_segment *segment,
                                           uint64_t offset,
                                           uint8_t *to,
                                           size_t length);

/**
 * Listens at `path`, which becomes a Unix socket for processes of this one's user and root's. One
 * that a dead host left is replaced; DOORBELL_OWNED if a process listens there.
 */
enum doorbell_status doorbell_host_bind(const char *path, struct doorbell_host **host);

/**
 * As doorbell_host_bind(), for processes of `users`; the socket file gets the rights `mode`, or
 * those that follow from `users` if that is negative, as with doorbell_listen_with().
 */
enum doorbell_status doorbell_host_bind_for(const char *path,
                                            const struct doorbell_users *users,
                                            int32_t mode,
                                            struct doorbell_host **host);

/**
 * Stops listening and removes the path. Connections go on.
 */
void doorbell_host_free(struct doorbell_host *host);

/**
 * The listening socket, readable when a process wants to meet; -1
 * for NULL. It belongs to the handle.
 */
int32_t doorbell_host_fd(const struct doorbell_host *host);

/**
 * Waits for the next process and offers it `segment`. After any
 * error, the host can go on accepting.
 */
enum doorbell_status doorbell_host_accept(const struct doorbell_host *host,
                                          const struct doorbell_segment *segment,
                                          struct doorbell_connection **connection);

/**
 * As doorbell_host_accept(), but waits no longer than until `deadline`: DOORBELL_TIMED_OUT if
 * nobody was met. A caller that says nothing keeps no other waiting.
 */
enum doorbell_status doorbell_host_accept_until(const struct doorbell_host *host,
                                                const struct doorbell_segment *segment,
                                                uint64_t deadline,
                                                struct doorbell_connection **connection);

/**
 * Meets the host that listens at `path`; DOORBELL_NO_OWNER if nobody does. DOORBELL_TOO_LARGE if
 * it offers more than 1 GiB of memory; doorbell_join_with() takes more.
 */
enum doorbell_status doorbell_join(const char *path, struct doorbell_connection **connection);

/**
 * As doorbell_join(), with `options`; NULL means the usual ones.
 */
enum doorbell_status doorbell_join_with(const char *path,
                                        const struct doorbell_join_options *options,
                                        struct doorbell_connection **connection);

/**
 * The host's part over a connected SOCK_SEQPACKET socket, which belongs to the connection from the
 * call on, whatever it returns.
 */
enum doorbell_status doorbell_host_over(int32_t fd,
                                        const struct doorbell_segment *segment,
                                        struct doorbell_connection **connection);

/**
 * The joiner's part over a connected SOCK_SEQPACKET socket, which belongs to the connection from
 * the call on, whatever it returns.
 */
enum doorbell_status doorbell_join_over(int32_t fd, struct doorbell_connection **connection);

/**
 * As doorbell_join_over(), with `options`; NULL means the usual ones.
 */
enum doorbell_status doorbell_join_over_with(int32_t fd,
                                             const struct doorbell_join_options *options,
                                             struct doorbell_connection **connection);

/**
 * Prepares a rendezvous with a child: fork, call doorbell_pending_in_child() in the child and
 * execute its program, and call doorbell_pending_meet() in the parent.
 */
enum doorbell_status doorbell_pending_new(struct doorbell_pending **pending);

/**
 * In the forked child, before its program is executed: leaves the child's end open and names it in
 * the environment variable DOORBELL_FD. With posix_spawn(), do the same with doorbell_pending_fd()
 * and doorbell_pending_variable().
 */
enum doorbell_status doorbell_pending_in_child(const struct doorbell_pending *pending);

/**
 * The child's end, which belongs to the handle and is close-on-exec;
 * -1 for NULL or after the rendezvous.
 */
int32_t doorbell_pending_fd(const struct doorbell_pending *pending);

/**
 * What DOORBELL_FD must be in the environment of a child in which the
 * child's end is descriptor `fd`: `text` becomes that, with a zero
 * byte. DOORBELL_TOO_LONG if it has no `size` bytes; 80 are enough.
 */
enum doorbell_status doorbell_pending_variable(const struct doorbell_pending *pending,
                                               int32_t fd,
                                               char *text,
                                               size_t size);

/**
 * Meets the child, which is process number `child`. Once;
 * DOORBELL_NO_ANSWER if it ended or did not join.
 */
enum doorbell_status doorbell_pending_meet(const struct doorbell_pending *pending,
                                           const struct doorbell_segment *segment,
                                           uint32_t child,
                                           struct doorbell_connection **connection);

/**
 * Frees a handle of a rendezvous with a child. The connection goes on.
 */
void doorbell_pending_free(struct doorbell_pending *pending);

/**
 * The child's part. Once; DOORBELL_NOTHING_INHERITED if the parent offered nothing.
 * DOORBELL_TOO_LARGE if it offers more than 1 GiB of memory; doorbell_inherit_with() takes more.
 */
enum doorbell_status doorbell_inherit(struct doorbell_connection **connection);

/**
 * As doorbell_inherit(), with `options`; NULL means the usual ones.
 */
enum doorbell_status doorbell_inherit_with(const struct doorbell_join_options *options,
                                           struct doorbell_connection **connection);

/**
 * Hangs up, unless ends of lanes that were taken over it are still held, or bells of a segment
 * that was joined over it which hold a waiter slot (eventfd, a descriptor): then the last of them
 * does. Other bells of the connection still ring and wait, but hear of no deaths, and get no
 * waiter slot any more (DOORBELL_HUNG_UP).
 */
void doorbell_connection_free(struct doorbell_connection *connection);

/**
 * Makes a handle of the connection's segment.
 */
enum doorbell_status doorbell_connection_segment(const struct doorbell_connection *connection,
                                                 struct doorbell_segment **segment);

/**
 * As doorbell_segment_bell(), on the connection's segment.
 */
enum doorbell_status doorbell_connection_bell(const struct doorbell_connection *connection,
                                              uint32_t index,
                                              uint32_t way,
                                              struct doorbell_bell **bell);

/**
 * Says who is at the other end.
 */
enum doorbell_status doorbell_connection_peer(const struct doorbell_connection *connection,
                                              struct doorbell_peer *peer);

/**
 * Makes one. Where `by_files` is false and the kernel has futex_waitv(), it sleeps on futexes for
 * bells and ends of channels alone; else in poll(), for which each bell lends it an eventfd.
 */
enum doorbell_status doorbell_select_new(bool by_files, struct doorbell_select **select);

/**
 * Frees it. No end is touched.
 */
void doorbell_select_free(struct doorbell_select *select);

/**
 * Whether it sleeps in poll() also where there is no descriptor among
 * its ends: because that was asked for, or because the kernel has no
 * futex_waitv(). False for NULL and while another thread waits with it.
 */
bool doorbell_select_by_files(const struct doorbell_select *select);

/**
 * Waits until one of `count` ends has something, or something is to be told
 * of its peer, or until `deadline`. `which` becomes its place: receive there
 * without waiting. It may have nothing, rarely: then wait again. Nothing is
 * taken by waiting. Each end gets its turn, however busy others are.
 */
enum doorbell_status doorbell_select_wait(const struct doorbell_select *select,
                                          const struct doorbell_end *ends,
                                          size_t count,
                                          uint64_t deadline,
                                          size_t *which);

/**
 * Makes a channel between two threads of this process, with a ring of at least `capacity` bytes.
 */
enum doorbell_status doorbell_channel(uint64_t capacity,
                                      struct doorbell_sender **sender,
                                      struct doorbell_receiver **receiver);

/**
 * Listens at the service `name` of this user: a name as `hello`, or a path, if it has a slash.
 * DOORBELL_OWNED if another process serves it. Clients are processes of this user or root; each
 * has memory of its own, and reaches no other.
 */
enum doorbell_status doorbell_listen(const char *name, struct doorbell_service **service);

/**
 * As doorbell_listen(), with `options`; NULL means the usual ones.
 */
enum doorbell_status doorbell_listen_with(const char *name,
                                          const struct doorbell_listen_options *options,
                                          struct doorbell_service **service);

/**
 * Copies the path at which it listens to `to`, where `size` bytes are, with a zero byte after it.
 * DOORBELL_TOO_LONG if that is too little; DOORBELL_IN_USE while another thread uses the handle.
 */
enum doorbell_status doorbell_service_path(const struct doorbell_service *service,
                                           char *to,
                                           size_t size);

/**
 * Connects to the service `name`, and waits until `deadline` for it to be there: DOORBELL_NO_OWNER
 * if nobody listens there by then.
 */
enum doorbell_status doorbell_connect(const char *name,
                                      uint64_t deadline,
                                      struct doorbell_sender **sender,
                                      struct doorbell_receiver **receiver);

/**
 * As doorbell_connect(), with `options`; NULL means the usual ones. DOORBELL_OTHER_USER if the
 * service runs as a user that `options->host` does not allow.
 */
enum doorbell_status doorbell_connect_with(const char *name,
                                           const struct doorbell_join_options *options,
                                           uint64_t deadline,
                                           struct doorbell_sender **sender,
                                           struct doorbell_receiver **receiver);

/**
 * Waits until `deadline` for the next client, which is the caller's
 * alone: doorbell_service_recv() does not hear of it.
 */
enum doorbell_status doorbell_service_accept(const struct doorbell_service *service,
                                             uint64_t deadline,
                                             struct doorbell_sender **sender,
                                             struct doorbell_receiver **receiver);

/**
 * Receives the next message of any client to `to`, where `size` bytes are, and the client's
 * number, which is never used again. Waits until `deadline`. DOORBELL_TOO_LONG if `size` is less
 * than `length`: the message is received again by the next call. What is wrong with a client ends
 * that client, and is no error.
 */
enum doorbell_status doorbell_service_recv(const struct doorbell_service *service,
                                           uint64_t deadline,
                                           void *to,
                                           size_t size,
                                           size_t *length,
                                           uint64_t *client);

/**
 * Sends `length` bytes to client number `client`. Waits while there is no room, because
 * the client does not take its answers, until `deadline`: then DOORBELL_TIMED_OUT. 0
 * never waits. While this call waits, no other client is served. DOORBELL_CLOSED if the client
 * has gone, DOORBELL_PEER_GONE if its process goes meanwhile.
 */
enum doorbell_status doorbell_service_send(const struct doorbell_service *service,
                                           uint64_t client,
                                           const void *message,
                                           size_t length,
                                           uint64_t deadline);

/**
 * A file that is readable when there may be something to receive, or somebody to accept, once a
 * call that does not wait has said that there was nothing. It belongs to the handle; -1 for NULL,
 * or while another thread uses the handle.
 */
int32_t doorbell_service_fd(const struct doorbell_service *service);

/**
 * Stops listening, removes the name, and hangs up on the clients,
 * but for those that were accepted.
 */
void doorbell_service_free(struct doorbell_service *service);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOORBELL_H */
