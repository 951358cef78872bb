/** The most entries of one list. */
const CAPACITY = 2 ** 20

/** The most entries in a text: the latest ones. */
export const SAVED = 500

/** Entries per block. The text of a block is cached, so a save after a few events encodes only those. */
export const BLOCK = 20

/** An entry is three numbers: two of the key, and the detail. */
export const ENTRY = 3
export const DETAIL = 2

/** Shorter lists grow fourfold instead of twofold, since copying is most of the cost of an event. */
const SHORT = 50_000

/** The lower bits of a slot are an entry's number, counted from 1; the others are bits of its key, compared first. */
const NUMBER = 2 * CAPACITY - 1

/** The most entries that are searched linearly, without a hash table. */
const FEW = 5

const EMPTY = new Int32Array()

/** An append-only list of entries, with a hash table of the latest entry per key. */
class SeenEntries {
  size = 0
  /** The entries while there are few. Thousands of quiet streams have no more, and a typed array takes 300 bytes. */
  #few: readonly number[] = []
  #entries = EMPTY
  /** The hash table, with open addressing and linear probing, at most two thirds full. Undefined while there are few entries. */
  #slots: Int32Array | undefined
  /** The cached texts of full blocks, by block number. */
  #texts: Map<number, string> | undefined

  get(entry: number, word: number): number {
    return (this.#slots === undefined ? this.#few : this.#entries)[entry * ENTRY + word] ?? 0
  }

  /** Base64 of the last `blocks` blocks of the first `size` entries. */
  text(size: number, blocks: number): string {
    if (blocks <= 0) return ''
    const whole = Math.floor(size / BLOCK)
    const from = Math.max(0, Math.ceil(size / BLOCK) - blocks)
    this.#evictTexts(from)
    let text = ''
    for (let block = from; block < whole; block++) text += this.#textOfBlock(block)
    return text + this.#encode(whole * BLOCK, size)
  }

  #textOfBlock(block: number): string {
    this.#texts ??= new Map()
    let text = this.#texts.get(block)
    if (text === undefined) {
      text = this.#encode(block * BLOCK, (block + 1) * BLOCK)
      this.#texts.set(block, text)
    }
    return text
  }

  /** Drops the cached texts of the blocks before this one. */
  #evictTexts(from: number): void {
    for (const block of this.#texts?.keys() ?? []) {
      if (block >= from) return
      this.#texts?.delete(block)
    }
  }

  #encode(from: number, until: number): string {
    const list = this.#slots === undefined ? this.#few : this.#entries
    return textOf(list.slice(from * ENTRY, until * ENTRY))
  }

  /** The detail of the key's latest entry. */
  find(a: number, b: number): number | undefined {
    if (this.#slots === undefined) return this.#findInFew(a, b)
    const entry = (this.#slots[this.#slotOf(this.#slots, a, b)] ?? 0) & NUMBER
    return entry === 0 ? undefined : this.#entries[(entry - 1) * ENTRY + DETAIL]
  }

  #findInFew(a: number, b: number): number | undefined {
    const entries = this.#few
    for (let at = entries.length - ENTRY; at >= 0; at -= ENTRY) {
      if (entries[at] === a && entries[at + 1] === b) return entries[at + DETAIL]
    }
    return undefined
  }

  add(a: number, b: number, detail: number): void {
    if (this.#slots === undefined && this.size < FEW) {
      this.#few = [...this.#few, a, b, detail]
      this.size += 1
      return
    }
    const slots = this.#slots === undefined || this.#isFull ? this.#grow() : this.#slots
    const at = this.size * ENTRY
    const entries = this.#entries
    entries[at] = a
    entries[at + 1] = b
    entries[at + DETAIL] = detail
    this.size += 1
    slots[this.#slotOf(slots, a, b)] = this.size | (b & ~NUMBER)
  }

  get #isFull(): boolean {
    return (this.size + 1) * ENTRY > this.#entries.length
  }

  /** The slot of a key; if it has none, the free slot to use for it. */
  #slotOf(slots: Int32Array, a: number, b: number): number {
    const mask = slots.length - 1
    for (let slot = a & mask; ; slot = (slot + 1) & mask) {
      const found = slots[slot] ?? 0
      if (found === 0) return slot
      // Most other keys differ in these bits, which avoids a cache miss.
      if (((found ^ b) & ~NUMBER) !== 0) continue
      const at = ((found & NUMBER) - 1) * ENTRY
      if (this.#entries[at] === a && this.#entries[at + 1] === b) return slot
    }
  }

  /** Allocates more entries and rebuilds the hash table, which it returns. */
  #grow(): Int32Array {
    const growth = this.size < SHORT ? 4 : 2
    const entries = new Int32Array(this.size * ENTRY * growth)
    entries.set(this.#slots === undefined ? this.#few : this.#entries)
    this.#entries = entries
    this.#few = []
    // Three slots for two entries, and up to a power of two: a smaller table misses the processor's caches less often.
    const slots = new Int32Array(2 ** Math.ceil(Math.log2((entries.length / ENTRY) * 1.5)))
    for (let entry = 1; entry <= this.size; entry++) {
      const at = (entry - 1) * ENTRY
      const b = entries[at + 1] ?? 0
      slots[this.#slotOf(slots, entries[at] ?? 0, b)] = entry | (b & ~NUMBER)
    }
    this.#slots = slots
    return slots
  }
}

/**
 * The entries of a stream that were seen: two lists, of which the older one is dropped when the newer one is full. A {@link snapshot} needs no
 * copy, since the lists are append-only; about 20 bytes per entry.
 */
export class SeenHistory {
  #current = new SeenEntries()
  #previous: SeenEntries | undefined
  #isPartial = false
  readonly #capacity: number

  /** @param capacity The most entries of one list. */
  constructor(capacity: number = CAPACITY) {
    this.#capacity = capacity
  }

  /** Whether entries were forgotten. */
  get isPartial(): boolean {
    return this.#isPartial
  }

  /** Number of entries. */
  get size(): number {
    return (this.#previous?.size ?? 0) + this.#current.size
  }

  /** Returns the function that encodes the latest entries until now: at most {@link SAVED}, from the start of a block. */
  get snapshot(): () => string {
    const [current, size, previous] = [this.#current, this.#current.size, this.#previous]
    return () => {
      const blocks = Math.ceil(size / BLOCK)
      const before = previous?.text(previous.size, SAVED / BLOCK - blocks) ?? ''
      return before + current.text(size, SAVED / BLOCK)
    }
  }

  protected find(a: number, b: number): number | undefined {
    return this.#current.find(a, b) ?? this.#previous?.find(a, b)
  }

  protected add(a: number, b: number, detail: number): void {
    if (this.#current.size === this.#capacity) {
      if (this.#previous !== undefined) this.#isPartial = true
      this.#previous = this.#current
      this.#current = new SeenEntries()
    }
    this.#current.add(a, b, detail)
  }

  /** Forgets all entries, and returns their numbers, the oldest first. */
  protected takeAll(): Iterable<readonly [a: number, b: number, detail: number]> {
    const lists = this.#previous === undefined ? [this.#current] : [this.#previous, this.#current]
    this.#current = new SeenEntries()
    this.#previous = undefined
    this.#isPartial = false
    return entriesOf(lists)
  }

  /**
   * Adds the entries of a text of {@link snapshot}. Returns whether the text is valid.
   *
   * @param isPartial Whether there were more entries than the text has, from its numbers.
   */
  protected restoreText(text: string, isPartial: (words: Int32Array) => boolean): boolean {
    const words = parseWords(text)
    if (words === undefined) return false
    for (let at = 0; at < words.length; at += ENTRY) {
      this.add(words[at] ?? 0, words[at + 1] ?? 0, words[at + DETAIL] ?? 0)
    }
    this.#isPartial = isPartial(words)
    return true
  }
}

function* entriesOf(
  lists: readonly SeenEntries[],
): Generator<readonly [a: number, b: number, detail: number]> {
  for (const list of lists) {
    for (let entry = 0; entry < list.size; entry++)
      yield [list.get(entry, 0), list.get(entry, 1), list.get(entry, DETAIL)]
  }
}

/** Base64 of the numbers, little-endian. */
function textOf(words: Iterable<number>): string {
  let bytes = ''
  for (const word of words) {
    bytes += String.fromCharCode(word & 0xff, (word >>> 8) & 0xff, (word >>> 16) & 0xff, word >>> 24)
  }
  return btoa(bytes)
}

/** Decodes such a text of at most {@link SAVED} entries; undefined if it is not valid. */
function parseWords(text: string): Int32Array | undefined {
  let bytes: string
  try {
    bytes = atob(text)
  } catch {
    return undefined
  }
  if (bytes.length % (4 * ENTRY) !== 0 || bytes.length > SAVED * 4 * ENTRY) return undefined
  const words = new Int32Array(bytes.length / 4)
  for (let at = 0; at < bytes.length; at++) {
    words[at >> 2] = (words[at >> 2] ?? 0) | (bytes.charCodeAt(at) << ((at & 3) * 8))
  }
  return words
}
