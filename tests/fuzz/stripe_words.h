/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_words.h - words of a script that stand for names, handles and commands of stripes
 */
#ifndef STRIPE_WORDS_H
#define STRIPE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define STRIPE_WORDS_KEY "volume = 0000000000000001\nkey = 00112233445566778899aabbccddeeff\n"
#define STRIPE_WORDS_OBJECT 0xf17a0000u  /* + n: the name of an object */
#define STRIPE_WORDS_COMMAND 0xf17b0000u /* + procedure: a command */
#define STRIPE_WORDS_HANDLE 0xf17c0000u  /* + n: a handle; + 4: with the term of a manager */

/** stripe_words_start - reads the key. Return: 0, or what stripe_key_parse() returned */
int stripe_words_start(void);

/** stripe_words_next_script - other objects from now on: those that the last script has removed are not its own */
void stripe_words_next_script(void);

/** stripe_words_put - puts what stands for @word. Return: its bytes; 0: nothing, or there is no room */
size_t stripe_words_put(uint8_t *to, size_t room, uint32_t word);

/** stripe_words_sign - signs the command of procedure @proc with its arguments, which stand behind it */
void stripe_words_sign(uint8_t *command, uint32_t proc, const uint8_t *args, size_t len);

#endif
