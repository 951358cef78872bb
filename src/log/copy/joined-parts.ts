import { LogUnsupportedError } from '../errors.ts'
import { wholeName } from '../consume/part-name.ts'
import type {
  CopiedDeadLetter,
  CopiedName,
  CopiedReader,
  CopiedRecord,
  CopySource,
} from '../store/copy-store.ts'

/** Maximum number of acknowledged positions after a cursor: each commit, which has a maximum size, stores all of them. */
const MAX_AHEAD = 10_000

/** A divided consumer, with the joint state of its partitions. */
interface Divided {
  readonly name: string
  /** State of the one reader of the consumer; null once its partitions have readers. */
  whole: CopiedReader | null
  readonly parts: Map<number, CopiedReader>
  readonly deadLetters: CopiedDeadLetter[]
}

/**
 * Reads a log for one that divides its sources otherwise, or not at all: each divided consumer becomes one reader again, which has
 * acknowledged whatever one of its partitions has. A shared consumer is divided anew.
 */
export class JoinedParts {
  readonly #source: CopySource
  readonly #records: () => AsyncIterable<CopiedRecord>
  #divided: Promise<ReadonlyMap<string, Divided>> | undefined

  /** @param records Reads the records of the source. */
  constructor(source: CopySource, records: () => AsyncIterable<CopiedRecord>) {
    this.#source = source
    this.#records = records
  }

  async *records(): AsyncGenerator<CopiedRecord, void> {
    this.#divided ??= this.#find()
    const divided = await this.#divided
    for await (const record of this.#records()) {
      if (!('name' in record) || !divided.has(wholeName(record.name))) yield record
    }
    for (const { name, whole, parts, deadLetters } of divided.values()) {
      const reader = whole ?? (await this.#joined(name, parts))
      if (reader === null && deadLetters.length === 0) continue
      yield { kind: 'name', name, position: null, reader }
      yield* joinedDeadLetters(name, deadLetters)
    }
  }

  /** The consumers that are divided, by their names. */
  async #find(): Promise<ReadonlyMap<string, Divided>> {
    const names: CopiedName[] = []
    for await (const record of this.#records()) if (record.kind === 'name') names.push(record)
    const divided = new Map<string, Divided>()
    for (const { name, reader } of names) {
      const whole = wholeName(name)
      if (whole === name) continue
      if (!name.startsWith('consumer.')) {
        throw new LogUnsupportedError(
          `${JSON.stringify(whole)} is divided by partitions that the new log does not have: give it as many partitions`,
        )
      }
      const found = divided.get(whole) ?? { name: whole, whole: null, parts: new Map(), deadLetters: [] }
      divided.set(whole, found)
      if (reader !== null) found.parts.set(Number(/\d+/.exec(name)?.[0]), reader)
    }
    // While a consumer is being divided, the readers of its partitions have not begun.
    for (const { name, reader } of names) {
      const found = divided.get(name)
      if (found !== undefined) found.whole = reader
    }
    for await (const record of this.#records()) {
      if (record.kind === 'letter') divided.get(wholeName(record.name))?.deadLetters.push(record)
    }
    return divided
  }

  async #joined(name: string, parts: Divided['parts']): Promise<CopiedReader | null> {
    const readers = [...parts.values()]
    if (readers.length === 0) return null
    const acknowledged: number[] = []
    let cursor = Math.min(...readers.map((reader) => reader.cursor))
    const end = Math.max(
      cursor,
      ...readers.flatMap((reader) => [reader.cursor, reader.acknowledged.at(-1) ?? 0]),
    )
    // Otherwise the gap is still to be read.
    let isWhole = cursor >= this.#source.head.trimmed.number
    for await (const entries of end === cursor ? [] : this.#source.entries()) {
      for (const { number, json } of entries) {
        if (number <= cursor || number > end) continue
        const { source }: { readonly source: string } = JSON.parse(json)
        const part = parts.get(this.#source.partitions.of(source))
        const isAcknowledged =
          part !== undefined && (number <= part.cursor || part.acknowledged.includes(number))
        isWhole &&= isAcknowledged
        if (isWhole) cursor = number
        else if (isAcknowledged) acknowledged.push(number)
        if (acknowledged.length > MAX_AHEAD) throw tooFarApart(name)
      }
    }
    const isCopy = readers.some((reader) => reader.isCopy === true)
    return { cursor, acknowledged, ...(isCopy && { isCopy }) }
  }
}

function tooFarApart(name: string): LogUnsupportedError {
  return new LogUnsupportedError(
    `the parts of ${JSON.stringify(name)} are too far apart for one reader: more than ${MAX_AHEAD} entries after the first that is not ` +
      'acknowledged are. Let it go on in the old log until the parts that are behind have caught up, and copy the log then; or give the ' +
      'new log as many partitions',
  )
}

/** Each dead letter once, with consecutive redelivery numbers. */
function* joinedDeadLetters(
  name: string,
  deadLetters: readonly CopiedDeadLetter[],
): Generator<CopiedDeadLetter, void> {
  const byNumber = new Map(deadLetters.map((deadLetter) => [deadLetter.number, deadLetter]))
  let redelivery = 0
  for (const deadLetter of byNumber.values()) {
    yield { ...deadLetter, name, redelivery: deadLetter.redelivery === null ? null : ++redelivery }
  }
}
