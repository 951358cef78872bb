import { ArgumentError } from './argument-error.ts'
import { markedRun, RUNS } from './run-identity.ts'
import type { Identified } from './identified.ts'

/**
 * The hash of the identity that {@link hashIdentity} was given last, 32 bits each. One place for all, because an array for
 * each event would cost more than its hash.
 */
export const hash = new Int32Array(4)

/**
 * Hashes an identity into 128 bits. That two of a million identities share one hash has a chance of one in 10²⁶, so the
 * hash may stand for the identity.
 *
 * A register of four words: each word of the text is mixed into the oldest, which makes the newest. How it mixes, and the
 * finish, are those of MurmurHash3 (x86, 128 bits). It is no defence against somebody who chooses ids in order to make
 * them collide; ids are the service's.
 */
export function hashIdentity(event: Identified): void {
  const run = markedRun(event)
  if (run === undefined) hashText(event)
  else hashRun(run.run_id, run.status)
}

/** Hashes a text alone, as {@link hashIdentity} does an identity without a source. */
export function hashString(text: string): void {
  withoutSource.begin('')
  append(text)
  finish(hash)
}

/**
 * Where a hash begins: with the register that a first text leaves, and that of the last such text is remembered. Many runs in
 * a row have the same status, and many events the same source.
 */
class Beginning {
  readonly #seed: number
  #text: string | undefined
  readonly #register = new Int32Array(4)

  /** @param seed Another for each kind of identity, so that none of one kind has the hash of one of another. */
  constructor(seed: number) {
    this.#seed = seed
  }

  begin(text: string): void {
    if (text === this.#text) return copy(this.#register, hash)
    for (let lane = 0; lane < 4; lane++) hash[lane] = this.#seed
    append(text)
    copy(hash, this.#register)
    this.#text = text
  }
}

const withoutSource = new Beginning(0)
const bySource = new Beginning(1)

/** A text and its hash, kept for the next time. */
class LastHash {
  readonly #seed: number
  #text: string | undefined
  readonly #lanes = new Int32Array(4)

  /** @param seed As that of a {@link Beginning}. */
  constructor(seed: number) {
    this.#seed = seed
  }

  of(text: string): Int32Array {
    if (text !== this.#text) {
      const lanes = this.#lanes
      mixText(this.#seed, this.#seed, this.#seed, this.#seed, text, lanes)
      finish(lanes)
      this.#text = text
    }
    return this.#lanes
  }
}

// A source hashes a run's id, and `dedupe` right after it its id and status: so the two are hashed each by itself.
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
  // All that is no text would have one hash, and pass for one event.
  if (typeof id !== 'string') throw new ArgumentError('id', 'a string', id)
  if (source === undefined) {
    withoutSource.begin('')
  } else {
    // It may be a run that comes from elsewhere, and has to be found beside those that are marked.
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
  // Nearly every id is of characters that fit a byte, so four of them make a word. Others begin elsewhere, so that none of
  // the one kind has the hash of one of the other.
  if (mixBytes(a, b, c, d, text, to) > 0xff) mixCharacters(~a, b, c, d, text, to)
}

/** Mixes four characters a word. Returns all of them, one over the other: beyond a byte, the hash is worth nothing. */
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
  keep(to, mix(a, b, last), b, c, d, length)
  return all
}

/** Mixes two characters a word. */
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
  keep(to, a, b, c, d, length)
}

/** The length says where a text ends and the next begins. */
function keep(to: Int32Array, a: number, b: number, c: number, d: number, length: number): void {
  to[0] = a
  to[1] = b
  to[2] = c
  to[3] = mix(d, a, length)
}

/** A bijection of each of the three for given others. */
function mix(oldest: number, next: number, word: number): number {
  const mixed = oldest ^ Math.imul(rotate(Math.imul(word, 0x239b961b), 15), 0xab0e9789)
  return (Math.imul(rotate(mixed, 19) + next, 5) + 0x561ccd1b) | 0
}

/** Lets each bit of the register change half the bits of the hash. */
function finish(lanes: Int32Array): void {
  const b = lanes[1] ?? 0
  const c = lanes[2] ?? 0
  const d = lanes[3] ?? 0
  const sum = ((lanes[0] ?? 0) + b + c + d) | 0
  const first = avalanche(sum)
  const second = avalanche(b + sum)
  const third = avalanche(c + sum)
  const fourth = avalanche(d + sum)
  const all = (first + second + third + fourth) | 0
  lanes[0] = all
  lanes[1] = second + all
  lanes[2] = third + all
  lanes[3] = fourth + all
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
