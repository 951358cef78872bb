import { EffectError, LogPositionError, LogUnsupportedError } from '../errors.ts'
import { partName, wholeName } from '../consume/part-name.ts'
import type { CopiedDeadLetter, CopiedReader, CopiedRecord, CopySource } from '../store/copy-store.ts'
import type { NewDeadLetter } from '../store/dead-letter-store.ts'
import type { EffectState, EffectStates, EffectStore, MovedEffects } from '../store/effect-store.ts'
import type { Position } from '../store/entry.ts'

/** A database of effects that can have states of a copy. */
export type MovableEffects = Pick<EffectStore<never>, 'name' | 'peek'> & { readonly moved: MovedEffects }

/** The effects of one reader, with numbers as positions. */
interface ReaderEffects {
  readonly reader: CopiedReader
  readonly deadLetters: ReadonlyMap<number, NewDeadLetter>
  readonly redelivered: readonly number[]
  readonly sent: readonly number[]
}

/** A consumer whose state is beside its effects. */
interface MovedConsumer {
  /** Name of the whole reader. */
  readonly name: string
  readonly store: MovableEffects
  /** The readers that it may have. */
  readonly names: readonly string[]
  /** The states of all of them, as they were read. */
  readonly states: Readonly<Record<'own' | 'moved', EffectStates>>
  /** The effects of the readers that the log has. */
  readonly effects: ReadonlyMap<string, ReaderEffects>
}

/** Dead letters by the numbers of their entries. */
type CopiedDeadLetters = Map<number, CopiedDeadLetter>

/**
 * The states that consumers with `exactlyOnce` have beside their effects. {@link store} writes those of the new log into the databases, beside
 * those of the old one. The log has copies of these states, which are copied as they are: they are behind, and say what the log has had.
 */
export class CopiedEffects {
  readonly #source: CopySource
  readonly #consumers: ReadonlyMap<string, MovedConsumer>
  /** The states of the readers of the new log. */
  readonly #states = new Map<string, CopiedReader>()
  /** The dead letters that the new log has of these readers. */
  readonly #deadLetters = new Map<string, CopiedDeadLetters>()

  private constructor(source: CopySource, consumers: ReadonlyMap<string, MovedConsumer>) {
    this.#source = source
    this.#consumers = consumers
  }

  /** Finds each consumer in one of the databases. Rejects if it is in none, in two, or with positions that the log does not have. */
  static async of(source: CopySource, stores: readonly MovableEffects[]): Promise<CopiedEffects> {
    const inLog = new Map<string, CopiedReader>()
    for await (const record of source.records()) {
      if (record.kind === 'name' && record.reader?.isCopy === true) inLog.set(record.name, record.reader)
    }
    const consumers = new Map<string, MovedConsumer>()
    for (const name of new Set(Array.from(inLog.keys(), wholeName))) {
      consumers.set(name, await consumerOf(source, stores, name, inLog))
    }
    return new CopiedEffects(source, consumers)
  }

  /** The numbers of all positions in the databases. */
  *numbers(): Generator<number, void> {
    for (const { effects } of this.#consumers.values()) {
      for (const { reader, deadLetters, redelivered, sent } of effects.values()) {
        yield reader.cursor
        for (const numbers of [reader.acknowledged, deadLetters.keys(), redelivered, sent]) yield* numbers
      }
    }
  }

  /** The records of the old log, with the states beside effects in place of their copies; none if there are no such states. */
  async *records(): AsyncGenerator<CopiedRecord, void> {
    if (this.#consumers.size === 0) return
    for await (const record of this.#source.records()) {
      const effects = record.kind === 'name' ? this.#effectsOf(record.name) : undefined
      yield record.kind === 'name' && effects !== undefined ? { ...record, reader: effects.reader } : record
    }
  }

  /** Adds the state of a reader of the new log. */
  addState(name: string, state: CopiedReader): void {
    this.#states.set(name, state)
  }

  /** Adds a dead letter of the new log. */
  addDeadLetter(deadLetter: CopiedDeadLetter): void {
    const { name, number } = deadLetter
    if (!this.#consumers.has(wholeName(name))) return
    const own = this.#deadLetters.get(name) ?? new Map<number, CopiedDeadLetter>()
    this.#deadLetters.set(name, own.set(number, deadLetter))
  }

  /**
   * Stores the states for the new log.
   *
   * @param numberOf The number in the new log.
   */
  async store(
    numberOf: (number: number) => number,
    positionOf: (number: number) => Promise<Position>,
  ): Promise<void> {
    for (const { name, store, names, states, effects } of this.#consumers.values()) {
      const inCopy = new Map<string, EffectState>()
      for (const [reader, state] of this.#states) {
        if (wholeName(reader) !== name) continue
        const own = effects.get(reader)
        const moved = {
          state,
          inLog: this.#deadLetters.get(reader) ?? new Map<number, CopiedDeadLetter>(),
          parts: own === undefined ? [...effects.values()] : [own],
        }
        inCopy.set(reader, await stateOf(moved, numberOf, positionOf))
      }
      await store.moved.store(name, names, (own, moved) => {
        if (textOf(own) === textOf(states.own) && textOf(moved) === textOf(states.moved)) return inCopy
        throw new EffectError(
          store.name,
          'was stored while the log was copied: end what uses it, and begin again',
        )
      })
    }
  }

  #effectsOf(reader: string): ReaderEffects | undefined {
    return this.#consumers.get(wholeName(reader))?.effects.get(reader)
  }
}

async function consumerOf(
  source: CopySource,
  stores: readonly MovableEffects[],
  name: string,
  inLog: ReadonlyMap<string, CopiedReader>,
): Promise<MovedConsumer> {
  const { count } = source.partitions
  const parts = count === 1 ? [] : Array.from({ length: count }, (_, part) => partName(name, part))
  const names = [name, ...parts]
  const found: MovedConsumer[] = []
  const problems: string[] = []
  for (const store of stores) {
    const effects = new Map<string, ReaderEffects>()
    const states = { own: new Map<string, EffectState>(), moved: new Map<string, EffectState>() }
    const missing: string[] = []
    try {
      for (const reader of names) {
        const known = inLog.get(reader)
        const state = await stateIn(source, store, reader, known !== undefined)
        if (state.own !== undefined) states.own.set(reader, state.own)
        if (state.moved !== undefined) states.moved.set(reader, state.moved)
        if (known === undefined) continue
        if (state.own === undefined) missing.push(reader)
        else effects.set(reader, await effectsOf(source, known, state.own))
      }
      if (missing.length === 0) found.push({ name, store, names, states, effects })
      else if (effects.size > 0)
        problems.push(`${store.name} has no position of ${JSON.stringify(missing[0])}`)
    } catch (error) {
      if (!(error instanceof LogPositionError)) throw error
      problems.push(
        `${store.name} has another log, or another state of this one (then run rivulet log rewind first): ${error.message}`,
      )
    }
  }
  const [only, another] = found
  const consumer = JSON.stringify(name.slice('consumer:'.length))
  if (only === undefined) {
    throw new LogUnsupportedError(
      `the consumer ${consumer} has its position in the database of its effects, which has to move along: name that database with the ` +
        `option \`effects\`, or --effects FILE${problems.map((problem) => `; ${problem}`).join('')}`,
    )
  }
  if (another === undefined) return only
  throw new LogUnsupportedError(
    `the consumer ${consumer} has a position in ${only.store.name} and in ${another.store.name}: name only the database that has its effects`,
  )
}

/** The states of a reader. One that an earlier copy has brought into the log becomes its own state first. */
async function stateIn(
  source: CopySource,
  store: MovableEffects,
  reader: string,
  isInLog: boolean,
): Promise<{ readonly own: EffectState | undefined; readonly moved: EffectState | undefined }> {
  const moved = await store.moved.peek(reader)
  if (isInLog && moved?.state !== undefined) {
    const isOfLog = (await numberIn(source, moved.state.cursor)) !== undefined
    // Its first claim in the log has a higher token.
    if (isOfLog) return { own: await store.moved.take({ name: reader, token: 0 }), moved: undefined }
  }
  return { own: await store.peek(reader), moved }
}

/** The number of a position; undefined for one that the log does not have. */
async function numberIn(source: CopySource, position: Position): Promise<number | undefined> {
  try {
    return await source.numberOf(position)
  } catch (error) {
    if (error instanceof LogPositionError) return undefined
    throw error
  }
}

/** Rejects with a `LogPositionError` for positions that the log does not have. */
async function effectsOf(
  source: CopySource,
  inLog: CopiedReader,
  { state, applied, deadLetters, redelivered, sent }: EffectState,
): Promise<ReaderEffects> {
  const numbersOf = async (positions: readonly Position[]) => {
    const numbers: number[] = []
    for (const position of positions) numbers.push(await source.numberOf(position))
    return numbers
  }
  const cursor = state === undefined ? inLog.cursor : await source.numberOf(state.cursor)
  const after = state === undefined ? inLog.acknowledged : await numbersOf(state.acknowledged)
  const acknowledged = new Set([...after, ...(await numbersOf(applied))].filter((number) => number > cursor))
  const known: number[] = []
  for (const position of sent) {
    // A row may be older than the state of the log that was put back.
    const number = await numberIn(source, position)
    if (number !== undefined) known.push(number)
  }
  const numbered = new Map<number, NewDeadLetter>()
  for (const deadLetter of deadLetters) numbered.set(await source.numberOf(deadLetter.position), deadLetter)
  return {
    reader: { cursor, acknowledged: [...acknowledged].toSorted((a, b) => a - b), isCopy: true },
    deadLetters: numbered,
    redelivered: await numbersOf(redelivered),
    sent: known,
  }
}

/** A reader of the new log. */
interface MovedReader {
  readonly state: CopiedReader
  /** The dead letters that the new log has. */
  readonly inLog: CopiedDeadLetters
  /** The readers whose rows for dead letters it gets. */
  readonly parts: readonly ReaderEffects[]
}

async function stateOf(
  { state: { cursor, acknowledged }, inLog, parts }: MovedReader,
  numberOf: (number: number) => number,
  positionOf: (number: number) => Promise<Position>,
): Promise<EffectState> {
  const deadLetters = new Map<number, NewDeadLetter>()
  for (const part of parts) {
    for (const [number, deadLetter] of part.deadLetters) {
      const moved = numberOf(number)
      const position = await positionOf(moved)
      const { redelivery, entry } = deadLetter
      deadLetters.set(moved, {
        ...deadLetter,
        position,
        ...(redelivery !== undefined && { redelivery: redeliveryOf(deadLetter, inLog.get(moved)) }),
        ...(entry !== undefined && { entry: { ...entry, position } }),
      })
    }
  }
  const moved = (numbers: readonly number[]) => numbers.map(numberOf)
  const redelivered = new Set(parts.flatMap((part) => moved(part.redelivered)))
  const sent = new Set(parts.flatMap((part) => moved(part.sent)))
  const positionsOf = async (numbers: Iterable<number>) => {
    const positions: Position[] = []
    for (const number of numbers) positions.push(await positionOf(number))
    return positions
  }
  return {
    state: {
      cursor: await positionOf(cursor),
      acknowledged: await positionsOf(acknowledged),
    },
    applied: [],
    deadLetters: [...deadLetters.values()],
    redelivered: await positionsOf(redelivered),
    sent: await positionsOf(
      [...sent].filter((number) => !redelivered.has(number) && !deadLetters.has(number)),
    ),
  }
}

/** A redelivery number that no dead letter has. */
const NO_REDELIVERY = 0

/** The redelivery number in the new log of a dead letter that has failed again, unless the old log has stored the failure already. */
function redeliveryOf(
  { attempts }: NewDeadLetter,
  inLog: { readonly attempts: number; readonly redelivery: number | null } | undefined,
): number {
  if (inLog === undefined || inLog.attempts >= attempts) return NO_REDELIVERY
  return inLog.redelivery ?? NO_REDELIVERY
}

/** The same text for the same states, whatever their order. */
function textOf(states: EffectStates): string {
  const sorted = Array.from(states, ([reader, { state, applied, deadLetters, redelivered, sent }]) => [
    reader,
    state?.cursor,
    ...[applied, redelivered, sent, state?.acknowledged ?? []].map((positions) => positions.toSorted()),
    deadLetters.map((deadLetter) => JSON.stringify(deadLetter)).toSorted(),
  ])
  return JSON.stringify(sorted.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)))
}
