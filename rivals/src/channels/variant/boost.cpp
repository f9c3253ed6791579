// SPDX-License-Identifier: MIT OR Apache-2.0
// Boost.Interprocess message_queue for `boost.rs`. No exception leaves it.

#include <boost/interprocess/ipc/message_queue.hpp>
#include <cstddef>
#include <cstdint>

using boost::interprocess::create_only;
using boost::interprocess::message_queue;
using boost::interprocess::permissions;

extern "C" {

void *boost_queue_create(const char *name, size_t most, size_t size)
{
	try {
		message_queue::remove(name);
		auto *queue = new message_queue(create_only, name, most, size, permissions(0600));
		// The mapping stays; nothing is left behind when its users end.
		message_queue::remove(name);
		return queue;
	} catch (...) {
		return nullptr;
	}
}

void boost_queue_close(void *queue)
{
	delete static_cast<message_queue *>(queue);
}

int boost_queue_send(void *queue, const uint8_t *from, size_t size, bool waits)
{
	auto *to = static_cast<message_queue *>(queue);
	try {
		if (!waits)
			return to->try_send(from, size, 0);
		to->send(from, size, 0);
		return 1;
	} catch (...) {
		return -1;
	}
}

int boost_queue_receive(void *queue, uint8_t *to, size_t size, bool waits)
{
	auto *from = static_cast<message_queue *>(queue);
	message_queue::size_type got = 0;
	unsigned priority = 0;
	try {
		if (!waits)
			return from->try_receive(to, size, got, priority) && got == size;
		from->receive(to, size, got, priority);
		return got == size ? 1 : -1;
	} catch (...) {
		return -1;
	}
}
}
