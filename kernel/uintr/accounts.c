// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many receivers each user has. A wake-up looks at all that sleep on its CPU,
 * in a hard interrupt, and whoever may send can ask for one at any time.
 */
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "driver.h"

struct account {
	struct list_head others;
	kuid_t uid;
	unsigned int receivers;
};

static LIST_HEAD(accounts);
static DEFINE_MUTEX(lock);

static unsigned int receivers_per_user = 1024;
module_param(receivers_per_user, uint, 0644);
MODULE_PARM_DESC(receivers_per_user, "most receivers of a user at a time");

static struct account *find(kuid_t uid)
{
	struct account *account;

	list_for_each_entry(account, &accounts, others) {
		if (uid_eq(account->uid, uid))
			return account;
	}
	account = kzalloc(sizeof(*account), GFP_KERNEL_ACCOUNT);
	if (!account)
		return NULL;
	account->uid = uid;
	list_add(&account->others, &accounts);
	return account;
}

static void forget(struct account *account)
{
	if (account->receivers)
		return;
	list_del(&account->others);
	kfree(account);
}

/* One more of the caller's, or a negative error. */
struct account *account_take(void)
{
	struct account *account;

	mutex_lock(&lock);
	account = find(current_uid());
	if (!account) {
		account = ERR_PTR(-ENOMEM);
	} else if (account->receivers >= READ_ONCE(receivers_per_user)) {
		forget(account);
		account = ERR_PTR(-EAGAIN);
	} else {
		account->receivers++;
	}
	mutex_unlock(&lock);
	return account;
}

void account_give(struct account *account)
{
	mutex_lock(&lock);
	account->receivers--;
	forget(account);
	mutex_unlock(&lock);
}
