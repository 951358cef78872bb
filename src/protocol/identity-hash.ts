import { ArgumentError } from './argument-error.ts'
import { RUNS, taggedRun } from './run-identity.ts'
import type { Identified } from './identified.ts'

/** The last result of {@link hashIdentity}, in 32-bit words. Reused, since an array per event would cost more than its hash. */
export const hash = new Int32Array(4)

/**
 * Hashes an identity to 128 bits. A million identities collide with a probability of 10⁻²⁶, so the hash represents the
 * identity. It does not resist attacks with chosen ids; the service chooses them.
 *
 * The state has four words. Each word of the text is mixed into the oldest one. Mixing and finalization are taken from MurmurHash3 (x86,
 * 128 bits).
 */
export function hashIdentity(event: Identified): void {
  const run = taggedRun(event)
  if (run === undefined) hashText(event)
  else hashRun(run.run_id, run.status)
}

/** Hashes a text, as {@link hashIdentity} hashes an identity without a source. */
export function hashString(text: string): void {
  withoutSource.begin('')
  append(text)
  finish(hash)
}

/** The state after hashing a first text. The last one is cached, since many events in a row have the same source. */
class Prefix {
  readonly #seed: number
  #text: string | undefined
  readonly #state = new Int32Array(4)

  /** @param seed Differs per kind of identity, so that two kinds never share a hash. */
  constructor(seed: number) {
    this.#seed = seed
  }

  begin(text: string): void {
    if (text === this.#text) return copy(this.#state, hash)
    for (let index = 0; index < 4; index++) hash[index] = this.#seed
    append(text)
    copy(hash, this.#state)
    this.#text = text
  }
}

const withoutSource = new Prefix(0)
const bySource = new Prefix(1)

/** Caches the hash of the last text. */
class LastHash {
  readonly #seed: number
  #text: string | undefined
  readonly #words = new Int32Array(4)

  /** @param seed As for {@link Prefix}. */
  constructor(seed: number) {
    this.#seed = seed
  }

  of(text: string): Int32Array {
    if (text !== this.#text) {
      const words = this.#words
      mixText(this.#seed, this.#seed, this.#seed, this.#seed, text, words)
      finish(words)
      this.#text = text
    }
    return this.#words
  }
}

// Hashed separately, since a source hashes a run's id, and `dedupe` hashes its id and status immediately after.
const lastRun = new LastHash(2)
const lastStatus = new LastHash(3)

/** The hash of a run's id. The array is reused for the next one. */
export function hashOfRunId(runId: string): Int32Array {
  return lastRun.of(runId)
}

function hashRun(runId: string, status: string): void {
  const run = lastRun.of(runId)
  const ofStatus = lastStatus.of(status)
  hash[0] = (run[0] ?? 0) ^ (ofStatus[0] ?? 0)
  hash[1] = (run[1] ?? 0) ^ (ofStatus[1] ?? 0)
  hash[2] = (run[2] ?? 0) ^ (ofStatus[2] ?? 0)
  hash[3] = (run[3] ?? 0) ^ (ofStatus[3] ?? 0)
}

function hashText({ source, id }: Identified): void {
  // Values other than strings would all have the same hash.
  if (typeof id !== 'string') throw new ArgumentError('id', 'a string', id)
  if (source === undefined) {
    withoutSource.begin('')
  } else {
    // The event of a run that was not created here must hash like a tagged one.
    const runId = source.startsWith(RUNS) ? source.slice(RUNS.length) : undefined
    if (runId !== undefined && id[runId.length] === ':' && id.startsWith(runId))
      return hashRun(runId, id.slice(runId.length + 1))
    bySource.begin(source)
  }
  append(id)
  finish(hash)
}

function append(text: string): void {
  mixText(hash[0] ?? 0, hash[1] ?? 0, hash[2] ?? 0, hash[3] ?? 0, text, hash)
}

function mixText(a: number, b: number, c: number, d: number, text: string, to: Int32Array): void {
  // The characters of nearly every id fit a byte, so a word holds four. Other texts start from another state, so that the two
  // encodings never share a hash.
  if (mixBytes(a, b, c, d, text, to) > 0xff) mixCharacters(~a, b, c, d, text, to)
}

/** Mixes four characters per word. Returns the bitwise OR of all; the hash is not valid if it exceeds a byte. */
function mixBytes(a: number, b: number, c: number, d: number, text: string, to: Int32Array): number {
  const { length } = text
  const rest = length & 3
  const whole = length - rest
  let all = 0
  for (let at = 0; at < whole; at += 4) {
    const first = text.charCodeAt(at)
    const second = text.charCodeAt(at + 1)
    const third = text.charCodeAt(at + 2)
    const fourth = text.charCodeAt(at + 3)
    all |= first | second | third | fourth
    const newest = mix(a, b, first | (second << 8) | (third << 16) | (fourth << 24))
    a = b
    b = c
    c = d
    d = newest
  }
  let last = 0
  for (let at = length - 1; at >= whole; at--) {
    const character = text.charCodeAt(at)
    all |= character
    last = (last << 8) | character
  }
  store(to, mix(a, b, last), b, c, d, length)
  return all
}

/** Mixes two characters per word. */
function mixCharacters(a: number, b: number, c: number, d: number, text: string, to: Int32Array): void {
  const { length } = text
  for (let at = 0; at < length; at += 2) {
    const second = at + 1 < length ? text.charCodeAt(at + 1) : 0
    const newest = mix(a, b, text.charCodeAt(at) | (second << 16))
    a = b
    b = c
    c = d
    d = newest
  }
  store(to, a, b, c, d, length)
}

/** Stores the state. The length is mixed in, to separate a text from the next. */
function store(to: Int32Array, a: number, b: number, c: number, d: number, length: number): void {
  to[0] = a
  to[1] = b
  to[2] = c
  to[3] = mix(d, a, length)
}

/** A bijection in each argument when the other two are fixed. */
function mix(oldest: number, next: number, word: number): number {
  const mixed = oldest ^ Math.imul(rotate(Math.imul(word, 0x239b961b), 15), 0xab0e9789)
  return (Math.imul(rotate(mixed, 19) + next, 5) + 0x561ccd1b) | 0
}

/** Finalization: each bit of the state changes half the bits of the hash. */
function finish(words: Int32Array): void {
  const b = words[1] ?? 0
  const c = words[2] ?? 0
  const d = words[3] ?? 0
  const sum = ((words[0] ?? 0) + b + c + d) | 0
  const first = avalanche(sum)
  const second = avalanche(b + sum)
  const third = avalanche(c + sum)
  const fourth = avalanche(d + sum)
  const all = (first + second + third + fourth) | 0
  words[0] = all
  words[1] = second + all
  words[2] = third + all
  words[3] = fourth + all
}

/** A loop, since `set` of a typed array takes longer for four numbers than the rest of a hash. */
function copy(from: Int32Array, to: Int32Array): void {
  for (let index = 0; index < 4; index++) to[index] = from[index] ?? 0
}

function avalanche(word: number): number {
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35)
  return word ^ (word >>> 16)
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits))
}
