// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many receivers each user has. A wake-up looks at all that sleep on its CPU,
 * in a hard interrupt, and whoever may send can ask for one at any time.
 */
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "driver.h"

struct account {
	struct rhash_head node;
	uid_t uid;	/* of the first user name space */
	unsigned int receivers;
};

static struct rhashtable accounts;
static DEFINE_MUTEX(lock);

static const struct rhashtable_params by_uid = {
	.head_offset = offsetof(struct account, node),
	.key_offset = offsetof(struct account, uid),
	.key_len = sizeof_field(struct account, uid),
	.automatic_shrinking = true,
};

static unsigned int receivers_per_user = 1024;
module_param(receivers_per_user, uint, 0644);
MODULE_PARM_DESC(receivers_per_user, "most receivers of a user at a time");

/* The user's, for which @fresh is taken if there is none; or a negative error. */
static struct account *find(uid_t uid, struct account **fresh)
{
	struct account *account = rhashtable_lookup_fast(&accounts, &uid, by_uid);
	int error;

	if (account)
		return account;
	account = *fresh;
	account->uid = uid;
	error = rhashtable_insert_fast(&accounts, &account->node, by_uid);
	if (error)
		return ERR_PTR(error);
	*fresh = NULL;
	return account;
}

static void forget(struct account *account)
{
	if (account->receivers)
		return;
	rhashtable_remove_fast(&accounts, &account->node, by_uid);
	/* Look-ups are under the lock too. */
	kfree(account);
}

/* One more of the caller's, or a negative error. */
struct account *account_take(void)
{
	/* Before the lock, which is everybody's: a user's memory may be long in coming. */
	struct account *account, *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&lock);
	account = find(from_kuid(&init_user_ns, current_uid()), &fresh);
	if (IS_ERR(account))
		goto unlock;
	if (account->receivers >= READ_ONCE(receivers_per_user)) {
		forget(account);
		account = ERR_PTR(-EAGAIN);
	} else {
		account->receivers++;
	}
unlock:
	mutex_unlock(&lock);
	kfree(fresh);
	return account;
}

void account_give(struct account *account)
{
	mutex_lock(&lock);
	account->receivers--;
	forget(account);
	mutex_unlock(&lock);
}

int accounts_start(void)
{
	return rhashtable_init(&accounts, &by_uid);
}

void accounts_stop(void)
{
	rhashtable_destroy(&accounts);
}
