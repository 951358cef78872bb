import { MAX_PAGE_LENGTH } from '../../store/contract.ts'
import type { Entry, Page, Position, ReadOptions } from '../../store/contract.ts'
import { typeField } from '../entries/entry-message.ts'
import type { MessageBatch, MessageBatches } from './message-batches.ts'
import type { StreamPlace, NatsPositions } from '../entries/positions.ts'
import type { EntryMessage } from './read-ahead.ts'

/** Maximum number of messages that one read passes, so that readers of several partitions stay near each other. */
const MAX_PASSED = 2_000

/** Time after which a waiting call ends if other partitions have entries, so that its reader moves on, in ms. */
const MOVE_INTERVAL = 5_000

/** The calls of a log that reading needs. */
export interface PartitionParts {
  readonly positions: NatsPositions
  readonly batches: MessageBatches
  /** The page for a position before trimmed entries; undefined if none were trimmed. */
  gap(position: Position, after: number, last: number): Promise<Page | undefined>
  /** The entry of a message, with its length; undefined if it is gone. */
  entry(message: EntryMessage): Promise<{ readonly entry: Entry; readonly length: number } | undefined>
}

/** Reads the entries of one partition, or of all for several readers. */
export class PartitionReading {
  readonly #parts: PartitionParts
  /** A range of numbers without an entry of the partition, as a waiting call has found. */
  readonly #quiet = new Map<number, { readonly after: number; readonly upto: StreamPlace }>()

  constructor(parts: PartitionParts) {
    this.#parts = parts
  }

  async read(
    position: Position,
    partition: number | undefined,
    { limit, types, until }: Pick<ReadOptions, 'limit' | 'types' | 'until'>,
  ): Promise<Page> {
    const { positions, batches, gap, entry: entryOf } = this.#parts
    const began = performance.now()
    const place = await positions.check(position)
    const { sequence: after } = place
    const end = until === undefined ? { sequence: Infinity, token: '' } : await positions.check(until)
    const { sequence: last } = end
    const wanted = types && new Set(types.map(typeField))
    const entries: Entry[] = []
    const lengths: number[] = []
    let length = 0
    const quiet = partition === undefined ? undefined : this.#quiet.get(partition)
    let at = quiet?.after === after ? earlier(quiet.upto, end) : place
    const from = at.sequence
    let isEnd = from >= last
    const isFull = () =>
      entries.length >= limit || length >= MAX_PAGE_LENGTH || at.sequence - from >= MAX_PASSED
    while (!isEnd && !isFull()) {
      const batch = await batches.after(at)
      if (!batch.isWhole) {
        // Forgotten, or trimmed.
        const page = await gap(position, after, last)
        if (page !== undefined) return page
      }
      let upto = earlier({ sequence: batch.upto, token: batch.token }, end)
      for (const each of following(batch, partition, at.sequence)) {
        const { sequence, token } = each.message
        if (sequence > upto.sequence) break
        if (wanted?.has(each.fields.type) === false) continue
        const found = await entryOf(each)
        if (found === undefined) continue
        entries.push(found.entry)
        lengths.push(found.length)
        length += found.length
        if (entries.length >= limit || length >= MAX_PAGE_LENGTH) upto = { sequence, token }
      }
      at = upto
      // A batch that was read before this call ends at the former end of the log, which may be before the last wanted entry.
      const isCurrent = until === undefined || batch.at >= began
      isEnd = at.sequence >= last || (at.sequence >= batch.upto && batch.isEnd && isCurrent)
    }
    return { entries, lengths, position: positions.read(at), isEnd }
  }

  /** Returns a check whether a partition has entries after a position, or its reader has to move on. */
  waiting(position: Position, partition: number): () => Promise<boolean> {
    const { positions, batches } = this.#parts
    const began = performance.now()
    let at: StreamPlace | undefined
    return async () => {
      const place = await positions.check(position)
      const { sequence: after } = place
      at ??= place
      const last = await positions.last()
      while (at.sequence < last) {
        const batch = await batches.after(at)
        if (!batch.isWhole || following(batch, partition, at.sequence).length > 0) return true
        at = { sequence: batch.upto, token: batch.token }
        this.#quiet.set(partition, { after, upto: at })
        if (batch.isEnd) break
      }
      return at.sequence > after && performance.now() - began >= MOVE_INTERVAL
    }
  }
}

function earlier(one: StreamPlace, other: StreamPlace): StreamPlace {
  return one.sequence <= other.sequence ? one : other
}

/** The messages of a partition, or of all, after a number. */
function following(
  batch: MessageBatch,
  partition: number | undefined,
  after: number,
): readonly EntryMessage[] {
  const messages = partition === undefined ? batch.all : (batch.partitions.get(partition) ?? [])
  if (after === batch.after) return messages
  const first = messages.findIndex(({ message }) => message.sequence > after)
  return first < 0 ? [] : messages.slice(first)
}
