import { setImmediate as turn } from 'node:timers/promises'
import { EffectError, FencedError } from '../../../src/log/errors.ts'
import type { Fence, Position, ReaderState } from '../../../src/log/store/contract.ts'
import type { NewDeadLetter } from '../../../src/log/store/dead-letter-store.ts'
import type {
  Effect,
  EffectCommit,
  EffectResult,
  EffectState,
  EffectStore,
  MovedEffects,
} from '../../../src/log/store/effect-store.ts'

interface Reader {
  token: number
  state: ReaderState | undefined
  readonly rows: Map<Position, { letter?: NewDeadLetter; isHandled: boolean }>
}

/** The state of a reader in a copy of its log; none for a reader that the copy does not have. */
interface Moved {
  readonly consumer: string
  readonly state: EffectState | undefined
}

interface Contents {
  readonly moved: Map<string, Moved>
  readonly readers: Map<string, Reader>
  written: string[]
}

/** The connection of a transaction. Writing takes a turn of the event loop, as a request to a server does. */
export interface MemoryConnection {
  write(text: string): Promise<void>
}

/** A database of effects in memory whose transactions are asynchronous, as those of a server are, and whose answers take their time. */
export class MemoryEffects implements EffectStore<MemoryConnection> {
  readonly name = 'effects in memory'
  /** What is called after each commit. What it throws takes the place of the answer. */
  afterCommit: () => void = () => {}
  #contents: Contents = { moved: new Map(), readers: new Map(), written: [] }
  #last: Promise<unknown> = Promise.resolve()

  get written(): readonly string[] {
    return this.#contents.written
  }

  async peek(reader: string): Promise<EffectState | undefined> {
    await turn()
    const found = this.#contents.readers.get(reader)
    return found && structuredClone(stateOf(found))
  }

  take({ name, token }: Fence): Promise<EffectState> {
    return this.#transaction(async ({ moved, readers }) => {
      const reader = readers.get(name) ?? { token, state: undefined, rows: new Map() }
      if (reader.token > token) throw new FencedError(this.name, name)
      reader.token = token
      readers.set(name, reader)
      forgetCopy(moved, moved.get(name)?.consumer)
      return structuredClone(stateOf(reader))
    })
  }

  async givenUp(reader: string, positions: readonly Position[]): Promise<readonly Position[]> {
    await turn()
    const rows = this.#contents.readers.get(reader)?.rows
    return positions.filter((position) => rows?.get(position)?.isHandled === false)
  }

  async commit({ name, token }: Fence, commit: EffectCommit<MemoryConnection>): Promise<EffectResult> {
    const result = await this.#transaction(async (contents) => {
      const reader = contents.readers.get(name)
      if (reader?.token !== token || contents.moved.has(name)) throw new FencedError(this.name, name)
      const outcomes: ({ readonly error: unknown } | undefined)[] = []
      const applied: Position[] = []
      for (const effect of commit.effects()) {
        const { positions } = effect
        const rows = positions.map((position) => [position, reader.rows.get(position)] as const)
        const savepoint = { written: [...contents.written], rows }
        try {
          await this.#apply(contents, reader, effect)
          outcomes.push(undefined)
          applied.push(...positions)
        } catch (error) {
          if (error instanceof EffectError) throw error
          contents.written = savepoint.written
          for (const [position, row] of savepoint.rows) if (row !== undefined) reader.rows.set(position, row)
          outcomes.push({ error })
        }
      }
      for (const { added, removed } of commit.sent) {
        for (const position of added) delete reader.rows.get(position)?.letter
        for (const position of removed) {
          if (reader.rows.get(position)?.isHandled === true) reader.rows.delete(position)
        }
      }
      const state = commit.stateAfter(applied)
      if (state !== undefined) reader.state = structuredClone(state)
      return { outcomes }
    })
    this.afterCommit()
    return result
  }

  readonly moved: MovedEffects = {
    peek: async (reader) => {
      await turn()
      return structuredClone(this.#contents.moved.get(reader)?.state)
    },
    take: ({ name, token }) =>
      this.#transaction(async ({ moved, readers }) => {
        const { consumer, state } = moved.get(name) ?? {}
        if (state === undefined) throw new FencedError(this.name, name)
        for (const [reader, of] of moved) {
          if (of.consumer !== consumer || of.state !== undefined) continue
          readers.delete(reader)
          moved.delete(reader)
        }
        moved.delete(name)
        readers.set(name, { token, state: state.state, rows: rowsOf(state) })
        return structuredClone(state)
      }),
    store: (consumer, names, statesOf) =>
      this.#transaction(async ({ moved, readers }) => {
        const known = names.flatMap((name) => {
          const reader = readers.get(name)
          return reader === undefined ? [] : [[name, stateOf(reader)] as const]
        })
        const earlier = names.flatMap((name) => {
          const state = moved.get(name)?.state
          return state === undefined ? [] : [[name, state] as const]
        })
        const own = new Map(known)
        const states = statesOf(own, new Map(earlier))
        forgetCopy(moved, consumer)
        for (const name of [...own.keys(), ...states.keys()])
          moved.set(name, { consumer, state: structuredClone(states.get(name)) })
      }),
  }

  async #apply(contents: Contents, reader: Reader, effect: Effect<MemoryConnection>): Promise<void> {
    const { rows } = reader
    for (const position of effect.positions) {
      const row = rows.get(position)
      if (effect.entries === undefined) {
        if (effect.deadLetter !== undefined)
          rows.set(position, { letter: structuredClone(effect.deadLetter), isHandled: false })
        else if (row !== undefined) rows.set(position, { isHandled: true })
      } else if (effect.isRedelivered) {
        if (row === undefined) throw new EffectError(this.name, 'knows nothing of it')
        if (row.isHandled) return
        rows.set(position, { isHandled: true })
      }
    }
    if (effect.entries === undefined) return
    await effect.apply({
      write: async (text) => {
        await turn()
        contents.written.push(text)
      },
    })
  }

  /** Runs one transaction after the other, each on a copy that takes the place of the contents. */
  #transaction<Result>(work: (contents: Contents) => Promise<Result>): Promise<Result> {
    const result = this.#last.then(async () => {
      await turn()
      const contents = structuredClone(this.#contents)
      const done = await work(contents)
      await turn()
      this.#contents = contents
      return done
    })
    this.#last = result.catch(() => {})
    // By then, the next transaction may have ended.
    return result.finally(async () => {
      for (let turns = 0; turns < 5; turns++) await turn()
    })
  }
}

function forgetCopy(moved: Map<string, Moved>, consumer: string | undefined): void {
  for (const [reader, of] of moved) if (of.consumer === consumer) moved.delete(reader)
}

function rowsOf({ deadLetters, redelivered, sent }: EffectState): Reader['rows'] {
  const rows: Reader['rows'] = new Map([...redelivered, ...sent].map((each) => [each, { isHandled: false }]))
  for (const letter of deadLetters) rows.set(letter.position, { letter, isHandled: false })
  for (const position of redelivered) rows.set(position, { ...rows.get(position), isHandled: true })
  return rows
}

function stateOf({ state, rows }: Reader): EffectState {
  const all = [...rows]
  return {
    state,
    applied: [],
    deadLetters: all.flatMap(([, { letter }]) => letter ?? []),
    redelivered: all.flatMap(([position, { isHandled }]) => (isHandled ? [position] : [])),
    sent: all.flatMap(([position, { letter, isHandled }]) => (letter || isHandled ? [] : [position])),
  }
}
