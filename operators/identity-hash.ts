import type { Identified } from './identified.ts'

/**
 * The hash of an identity, 32 bits each: of the identity that {@link hashIdentity} was given last. One place for all,
 * because an array for each event would cost more than its hash.
 */
export const hash = new Int32Array(4)

/**
 * Hashes an identity into 128 bits. That two of a million identities share one hash has a chance of one in 10²⁶, so the
 * hash may stand for the identity.
 *
 * A register of four words: each word of the text is mixed into the oldest, as MurmurHash3 does it, which makes
 * the newest. It is no defence against somebody who chooses ids in order to make them collide; ids are the service's.
 */
export function hashIdentity({ source, id }: Identified): void {
  if (source === undefined) copy(WITHOUT_SOURCE, hash)
  else hashSource(source)
  append(id)
}

const WITHOUT_SOURCE = new Int32Array([0, 0, 0, 0])
/** Another, so that an empty source is not the same as none. */
const WITH_SOURCE = new Int32Array([1, 1, 1, 1])

let lastSource: string | undefined
const lastHash = new Int32Array(4)

/** Remembers the last one, since many events in a row come from one source. */
function hashSource(source: string): void {
  if (source === lastSource) {
    copy(lastHash, hash)
    return
  }
  copy(WITH_SOURCE, hash)
  append(source)
  lastSource = source
  copy(hash, lastHash)
}

function append(text: string): void {
  const a = hash[0] ?? 0
  const b = hash[1] ?? 0
  const c = hash[2] ?? 0
  const d = hash[3] ?? 0
  // Nearly every id is of characters that fit a byte, so four of them make a word.
  if (mixBytes(a, b, c, d, text) > 0xff) mixCharacters(~a, b, c, d, text)
}

/** Mixes four characters a word. Returns all of them, one over the other: beyond a byte, the hash is worth nothing. */
function mixBytes(a: number, b: number, c: number, d: number, text: string): number {
  const { length } = text
  let all = 0
  for (let at = 0; at < length; at += 4) {
    const first = text.charCodeAt(at)
    const second = at + 1 < length ? text.charCodeAt(at + 1) : 0
    const third = at + 2 < length ? text.charCodeAt(at + 2) : 0
    const fourth = at + 3 < length ? text.charCodeAt(at + 3) : 0
    all |= first | second | third | fourth
    const newest = mix(a, b, first | (second << 8) | (third << 16) | (fourth << 24))
    a = b
    b = c
    c = d
    d = newest
  }
  finish(a, b, c, d, length)
  return all
}

/** Mixes two characters a word. */
function mixCharacters(a: number, b: number, c: number, d: number, text: string): void {
  const { length } = text
  for (let at = 0; at < length; at += 2) {
    const second = at + 1 < length ? text.charCodeAt(at + 1) : 0
    const newest = mix(a, b, text.charCodeAt(at) | (second << 16))
    a = b
    b = c
    c = d
    d = newest
  }
  finish(a, b, c, d, length)
}

/** One step of MurmurHash3 (x86, 128 bits): a bijection of each of the three for given others. */
function mix(oldest: number, next: number, word: number): number {
  const mixed = oldest ^ Math.imul(rotate(Math.imul(word, 0x239b961b), 15), 0xab0e9789)
  return (Math.imul(rotate(mixed, 19) + next, 5) + 0x561ccd1b) | 0
}

/** Lets every bit of the register and of the length change half the bits of the hash. */
function finish(a: number, b: number, c: number, d: number, length: number): void {
  for (let round = 0; round < 2; round++) {
    a = avalanche(a ^ length)
    b = avalanche((b ^ length) + a)
    c = avalanche((c ^ length) + b)
    d = avalanche((d ^ length) + c)
    a ^= d
  }
  hash[0] = a
  hash[1] = b
  hash[2] = c
  hash[3] = d
}

/** By hand: for four numbers, `set` of a typed array takes longer than all the rest. */
function copy(from: Int32Array, to: Int32Array): void {
  for (let lane = 0; lane < 4; lane++) to[lane] = from[lane] ?? 0
}

function avalanche(word: number): number {
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35)
  return word ^ (word >>> 16)
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits))
}
