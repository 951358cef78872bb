import { createHash } from 'node:crypto'
import { ArgumentError, hidden } from '../../protocol/argument-error.ts'
import { checkFunction, checkOptions, checkSignal } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import { LogError, LogUnsupportedError } from '../errors.ts'
import type { EffectStore } from '../store/effect-store.ts'
import { CopiedEffects } from './copied-effects.ts'
import type { MovableEffects } from './copied-effects.ts'
import { JoinedParts } from './joined-parts.ts'
import { movedCheckpoint } from '../process/progress.ts'
import type { LogStore } from '../store/contract.ts'
import type {
  CopiedEntry,
  CopiedRecord,
  CopyHead,
  CopySource,
  CopyStore,
  CopyTarget,
} from '../store/copy-store.ts'

/** Settings of {@link migrateLog}. */
export interface MigrateOptions {
  /**
   * The databases of the effects of all consumers with `exactlyOnce`: `sqliteEffects(database)` of `rivulet/log/sqlite`, or stores of other
   * databases that have `moved`. Default: none.
   */
  readonly effects?: readonly EffectStore<never>[]
  /** Called with the number of copied entries, and of all. Default: nothing is called. */
  readonly onProgress?: (copied: number, entries: number) => void
  /** Aborts the copy. The files or streams that were written are no log then. Default: none. */
  readonly signal?: AbortSignal
}

/** Numbers of the records that {@link migrateLog} has copied, and found again in the new log. */
export interface Migrated {
  readonly entries: number
  /** Upstream positions. */
  readonly streams: number
  /** Consumers and processes. */
  readonly readers: number
  /** States of processes. */
  readonly states: number
  readonly deadLetters: number
  /** Webhooks that are not recorded yet. */
  readonly webhooks: number
  /** Identities of deleted entries. */
  readonly identities: number
  /** SHA-256 hash of all entries in their order, with their times of recording. The same for both logs. */
  readonly hash: string
}

/**
 * Copies a whole log into a new one, in any store that has `copying`: entries with their times and revisions, upstream positions, consumers and processes with
 * all that they have, dead letters, webhooks, and what is known of deleted entries. Everything goes on in the new log where it was in the
 * old one, which stays as it is. Then the new log is read again and compared.
 *
 * Positions of the old log are refused by the new one, so clients in browsers begin with a new snapshot. A consumer with `exactlyOnce` has
 * its position in the database of its effects, so that is named by `effects`: rejects with a `LogUnsupportedError` otherwise. Both positions are in
 * the database until the consumer begins in one of the logs. It is refused by the other one from then on, so that no effect happens twice. The
 * database stays where it is.
 *
 * Rejects with a `LogInUseError` while an open log has claimed anything of the old log: end what uses it first. An SQLite file keeps others
 * from writing meanwhile; a log on a server rejects afterwards, if others have written to it. If it rejects or the process dies, there is no
 * new log: opening what was written rejects, and the next call begins anew.
 *
 * @param from A log of `sqliteStore`, `natsStore` or a store of your own. It need not be open, and is left open.
 * @param to The same. A file must not exist; a log on a server may exist if nothing was ever recorded in it.
 */
export async function migrateLog(
  from: Pick<LogStore, 'copying'>,
  to: Pick<LogStore, 'copying'>,
  options: MigrateOptions = {},
): Promise<Migrated> {
  checkOptions('options', options, ['effects', 'onProgress', 'signal'])
  const { effects = [], onProgress = () => {}, signal } = options
  const stores = effectStoresOf(effects)
  checkFunction('onProgress', onProgress)
  if (signal !== undefined) checkSignal('signal', signal)
  const [sources, targets] = [copyStoreOf('from', from), copyStoreOf('to', to)]
  const source = await sources.source()
  try {
    checkApart(source, stores)
    const copied = await CopiedEffects.of(source, stores)
    const target = await targets.target()
    try {
      return await copy({ source, target, effects: copied, onProgress, signal })
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

function copyStoreOf(name: string, store: Pick<LogStore, 'copying'> | undefined | null): CopyStore {
  const copying = store?.copying
  if (copying === undefined)
    throw new ArgumentError(name, 'a store with `copying`, such as sqliteStore', hidden(store))
  return copying
}

function effectStoresOf(effects: NonNullable<MigrateOptions['effects']>): readonly MovableEffects[] {
  if (!Array.isArray(effects)) throw new ArgumentError('effects', 'an array', hidden(effects))
  return effects.map((given: EffectStore<never>) => {
    const moved = isObject(given) ? given.moved : undefined
    if (moved === undefined)
      throw new ArgumentError('effects', 'stores with `moved`, such as sqliteEffects', hidden(given))
    return { name: given.name, peek: (reader) => given.peek(reader), moved }
  })
}

/** The file is locked while it is copied. */
function checkApart({ file }: CopySource, stores: readonly MovableEffects[]): void {
  if (file === undefined || stores.every(({ name }) => name !== file)) return
  throw new LogUnsupportedError(
    `${file} is the log that is copied, and has the effects too: end what uses it, copy the file with its -wal file, and name the copy as ` +
      'the database of the effects',
  )
}

/** What {@link copy} copies, and where. */
interface Copying {
  readonly source: CopySource
  readonly target: CopyTarget
  readonly effects: CopiedEffects
  readonly onProgress: (copied: number, entries: number) => void
  readonly signal: AbortSignal | undefined
}

async function copy({ source, target, effects, onProgress, signal }: Copying): Promise<Migrated> {
  const { head, partitions } = source
  const divided = (own: () => AsyncIterable<CopiedRecord>) => {
    if (partitions.count === target.partitionCount) return own
    const joined = new JoinedParts(source, own)
    return () => joined.records()
  }
  const records = divided(() => source.records())
  const numbers = await NumberMap.of(head, effects, records())
  const sent = new Digest()
  await target.begin({
    ...head,
    last: numbers.of(head.last),
    trimmed: { ...head.trimmed, number: numbers.of(head.trimmed.number) },
  })
  onProgress(0, head.entries)
  for await (const entries of source.entries()) {
    signal?.throwIfAborted()
    const moved = entries.map((entry) => movedEntry(entry, numbers))
    await target.addEntries(moved)
    sent.addEntries(moved)
    onProgress(sent.counts.entries, head.entries)
  }
  for await (const record of records()) {
    signal?.throwIfAborted()
    const moved = movedRecord(record, numbers)
    await target.add(moved)
    sent.add(moved)
    if (moved.kind === 'letter') effects.addDeadLetter(moved)
  }
  for await (const record of divided(() => effects.records())()) {
    const moved = movedRecord(record, numbers)
    if (moved.kind === 'name' && moved.reader?.isCopy === true) effects.addState(moved.name, moved.reader)
  }
  await compare(sent, await target.written(), signal)
  await source.checkUnchanged()
  signal?.throwIfAborted()
  // Before the new log can be used. Until then, the old one goes on with its own states.
  await effects.store(
    (number) => numbers.of(number),
    (number) => target.positionOf(number),
  )
  // What began in the old log meanwhile has dropped the new states.
  await source.checkUnchanged()
  await target.finish()
  return { ...sent.counts, hash: sent.hash }
}

async function compare(sent: Digest, written: CopySource, signal: AbortSignal | undefined): Promise<void> {
  const found = new Digest()
  for await (const entries of written.entries()) {
    signal?.throwIfAborted()
    found.addEntries(entries)
  }
  for await (const record of written.records()) {
    signal?.throwIfAborted()
    found.add(record)
  }
  if (found.text === sent.text) return
  throw new LogError(
    `the new log differs from the old one and was given up: ${sent.text} were copied, and ${found.text} were read again. ` +
      'Migrate again, while nothing else writes to it',
  )
}

/**
 * The numbers of positions in the new log. Numbers after the trimmed part follow each other as before. In the trimmed part, only the
 * positions that something refers to get numbers of their own, so that their order stays: a server needs a message for each number.
 */
class NumberMap {
  readonly #trimmed: number
  /** The numbers within the trimmed part that are referred to, in order; the last one is its end. */
  readonly #kept: ReadonlyMap<number, number>

  private constructor({ trimmed }: CopyHead, kept: Iterable<number>) {
    this.#trimmed = trimmed.number
    const sorted = [...new Set(kept)].filter((number) => number > 0).toSorted((a, b) => a - b)
    this.#kept = new Map(sorted.map((number, index) => [number, index + 1]))
  }

  static async of(
    head: CopyHead,
    effects: CopiedEffects,
    records: AsyncIterable<CopiedRecord>,
  ): Promise<NumberMap> {
    const { number: trimmed } = head.trimmed
    const kept = new Set([trimmed])
    const keep = (number: number) => {
      if (number < trimmed) kept.add(number)
      return number
    }
    for await (const record of records) movedRecord(record, { of: keep })
    for (const number of effects.numbers()) keep(number)
    return new NumberMap(head, kept)
  }

  of(number: number): number {
    if (number > this.#trimmed) return number - this.#trimmed + this.#kept.size
    return this.#kept.get(number) ?? 0
  }
}

function movedEntry(entry: CopiedEntry, numbers: NumberMap): CopiedEntry {
  return { ...entry, number: numbers.of(entry.number) }
}

/** Returns a record with the numbers of the new log. */
function movedRecord(record: CopiedRecord, numbers: Pick<NumberMap, 'of'>): CopiedRecord {
  const of = (number: number) => numbers.of(number)
  switch (record.kind) {
    case 'name': {
      const { reader } = record
      if (reader === null) return record
      const { cursor, acknowledged } = reader
      return { ...record, reader: { ...reader, cursor: of(cursor), acknowledged: acknowledged.map(of) } }
    }
    case 'process': {
      const checkpoint = movedCheckpoint(record.name, record.checkpoint, {
        entry: (number) => String(of(Number(number))),
        change: (change) => change,
      })
      return { ...record, checkpoint }
    }
    case 'letter':
      return { ...record, number: of(record.number) }
    case 'identity':
      return { ...record, forgotten: record.forgotten === null ? null : of(record.forgotten) }
    case 'state':
    case 'timer':
    case 'delivery':
    case 'deliveryId':
      return record
  }
}

/** The field of {@link Migrated} that counts the records of each kind. */
const COUNTED: { readonly [Kind in CopiedRecord['kind']]?: Exclude<keyof Migrated, 'hash'> } = {
  state: 'states',
  letter: 'deadLetters',
  delivery: 'webhooks',
  identity: 'identities',
}

/** Counts and hashes of all records of a log. The order of records that are not entries is that of their store. */
class Digest {
  readonly counts = {
    entries: 0,
    streams: 0,
    readers: 0,
    states: 0,
    deadLetters: 0,
    webhooks: 0,
    identities: 0,
  }
  readonly #entries = createHash('sha256')
  readonly #numbers = createHash('sha256')
  #records = 0n

  addEntries(entries: readonly CopiedEntry[]): void {
    for (const { number, completeness, recorded, revision, backfill, json } of entries) {
      this.#numbers.update(`${number} ${completeness}\n`)
      this.#entries.update(`${JSON.stringify([recorded, revision, backfill])}${json}\n`)
      this.counts.entries += 1
    }
  }

  add(record: CopiedRecord): void {
    const text = createHash('sha256').update(canonical(record)).digest('hex')
    this.#records = BigInt.asUintN(256, this.#records + BigInt(`0x${text}`))
    const counted = COUNTED[record.kind]
    if (counted !== undefined) this.counts[counted] += 1
    if (record.kind !== 'name') return
    if (record.position !== null) this.counts.streams += 1
    if (record.reader !== null) this.counts.readers += 1
  }

  get hash(): string {
    return this.#entries.copy().digest('hex')
  }

  /** A text that is the same for two logs with the same content. */
  get text(): string {
    const numbers = this.#numbers.copy().digest('hex')
    const counts = Object.entries(this.counts).map(([name, count]) => `${count} ${name}`)
    return `${counts.join(', ')} (${this.hash} ${numbers} ${this.#records.toString(16)})`
  }
}

/** The same text for the same record, whatever the order of its fields. */
function canonical(record: CopiedRecord): string {
  return JSON.stringify(record, (_, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}
