import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { exactlyOnceIn } from '../../../src/log/consume/exactly-once.ts'
import { EffectError, FencedError } from '../../../src/log/errors.ts'
import { memoryStore } from '../../../src/log/memory/store.ts'
import { openLog } from '../../../src/log/event-log/open-log.ts'
import type { Entry, Position, ReaderState } from '../../../src/log/store/contract.ts'
import type { NewDeadLetter } from '../../../src/log/store/dead-letter-store.ts'
import type { Effect, EffectCommit, EffectStore } from '../../../src/log/store/effect-store.ts'
import { change } from '../../operators/events.ts'
import { append } from '../append.ts'

/** A fresh database of effects. */
export interface EffectsUnderTest<Connection> {
  /** Opens it, once more as another process does. */
  open(): EffectStore<Connection>
  /** Writes a text, which {@link written} returns once it is committed. */
  write(connection: Connection, text: string): unknown
  written(): readonly string[]
}

const READER = 'consumer:ledger'
const fence = (token: number) => ({ name: READER, token })

/** An entry at a position. */
export const entryAt = (position: Position): Entry =>
  Object.assign(change(position), { position, recorded: 1, revision: 1, backfill: false })

const deadLetterAt = (position: Position, attempts = 1): NewDeadLetter => ({
  position,
  error: { name: 'Error', message: 'no luck' },
  attempts,
})

const NOTHING = { state: undefined, applied: [], deadLetters: [], redelivered: [], sent: [] }
const STATE = { cursor: 'p0', acknowledged: [] }
const KEPT = { ...NOTHING, state: STATE }

/** The suite that each store of effects passes. */
export function describeEffectStore<Connection>(
  name: string,
  fresh: () => EffectsUnderTest<Connection>,
): void {
  /** A database whose reader is taken with the token 2. */
  async function taken() {
    const { open, write, written } = fresh()
    const store = open()
    await store.take(fence(2))
    /** An effect that writes its position, and then fails with the error, if there is one. */
    const effect = (
      position: Position,
      { isRedelivered = false, error }: { readonly isRedelivered?: boolean; readonly error?: Error } = {},
    ): Effect<Connection> => ({
      positions: [position],
      isRedelivered,
      entries: [entryAt(position)],
      apply: (connection) => {
        const result = write(connection, position)
        if (error !== undefined && result instanceof Promise) return result.then(() => Promise.reject(error))
        if (error !== undefined) throw error
        return result
      },
    })
    const commit = (
      effects: readonly Effect<Connection>[],
      rest: Partial<EffectCommit<Connection>> = {},
      token = 2,
    ) => store.commit(fence(token), { effects: () => effects, sent: [], stateAfter: () => STATE, ...rest })
    const kept = () => open().peek(READER)
    return { open, store, effect, commit, kept, write, written }
  }

  describe(`${name}: effects`, () => {
    it('know nothing of a reader before it is taken, and no state of it after that', async () => {
      const { open } = fresh()
      expect(await open().peek(READER)).toBeUndefined()
      expect(await open().take(fence(1))).toEqual(NOTHING)
      expect(await open().peek(READER)).toEqual(NOTHING)
      expect(await open().peek('consumer:other')).toBeUndefined()
    })

    it('are stored with the state behind them', async () => {
      const { open, effect, commit, kept, written } = await taken()
      const states: ReaderState[] = []
      const stateAfter = (applied: readonly Position[]) => {
        const state = { cursor: 'p0', acknowledged: applied }
        states.push(state)
        return state
      }
      const result = await commit([effect('p1'), effect('p3')], { stateAfter })

      expect(result).toEqual({ outcomes: [undefined, undefined] })
      expect(written()).toEqual(['p1', 'p3'])
      const stored = { ...NOTHING, state: { cursor: 'p0', acknowledged: ['p1', 'p3'] } }
      expect(states.at(-1)).toEqual(stored.state)
      expect(await kept()).toEqual(stored)
      // A commit without another state leaves it as it is, and so does the next owner.
      await commit([], { stateAfter: () => undefined })
      expect(await open().take(fence(3))).toEqual(stored)
    })

    it('are asked for one by one, each once the one before is applied', async () => {
      const { effect, commit } = await taken()
      const steps: string[] = []
      await commit([], {
        *effects() {
          for (const position of ['p1', 'p2']) {
            steps.push(`asked for ${position}`)
            const given = effect(position)
            if (given.entries === undefined) return
            yield {
              ...given,
              apply: (connection: Connection) => {
                steps.push(`applied ${position}`)
                return given.apply(connection)
              },
            }
          }
        },
      })

      expect(steps).toEqual(['asked for p1', 'applied p1', 'asked for p2', 'applied p2'])
    })

    it('are taken back alone where they fail, and have no position in the state', async () => {
      const { effect, commit, kept, written } = await taken()
      const error = new Error('no luck')
      const result = await commit([effect('p1'), effect('p2', { error }), effect('p3')], {
        stateAfter: (applied) => ({ cursor: 'p0', acknowledged: applied }),
      })

      expect(result).toEqual({ outcomes: [undefined, { error }, undefined] })
      expect(written()).toEqual(['p1', 'p3'])
      expect((await kept())?.state?.acknowledged).toEqual(['p1', 'p3'])
    })

    it('of a batch are one effect with all of its positions', async () => {
      const { effect, commit, kept, written } = await taken()
      const error = new Error('no luck')
      const batchOf = (given: Effect<Connection>, positions: readonly Position[]): Effect<Connection> =>
        given.entries === undefined ? given : { ...given, positions, entries: positions.map(entryAt) }
      const result = await commit(
        [batchOf(effect('p1'), ['p1', 'p2', 'p4']), batchOf(effect('p5', { error }), ['p5', 'p6'])],
        { stateAfter: (applied) => ({ cursor: 'p0', acknowledged: applied }) },
      )

      expect(result).toEqual({ outcomes: [undefined, { error }] })
      expect(written()).toEqual(['p1'])
      expect((await kept())?.state?.acknowledged).toEqual(['p1', 'p2', 'p4'])
    })

    it('are not stored without the state behind them', async () => {
      const { effect, commit, kept, written } = await taken()
      const error = new Error('stopped')
      const stateAfter = () => {
        throw error
      }
      await expect(commit([effect('p1')], { stateAfter })).rejects.toBe(error)

      expect(written()).toEqual([])
      expect(await kept()).toEqual(NOTHING)
      await commit([effect('p1')])
      expect(written()).toEqual(['p1'])
    })

    it('of an earlier fence are refused, and so is the fence', async () => {
      const { open, effect, commit, written } = await taken()
      await expect(open().take(fence(1))).rejects.toBeInstanceOf(FencedError)
      await open().take(fence(3))

      await expect(commit([effect('p1')])).rejects.toBeInstanceOf(FencedError)
      await expect(open().take(fence(2))).rejects.toBeInstanceOf(FencedError)
      expect(written()).toEqual([])
      await commit([effect('p1')], {}, 3)
      expect(written()).toEqual(['p1'])
    })

    it('of a dead letter happen once, however often the log hands it out again', async () => {
      const { open, effect, commit, kept, written } = await taken()
      const deadLetter = deadLetterAt('p1')
      await commit([{ positions: ['p1'], isRedelivered: false, deadLetter }])
      expect(await kept()).toEqual({ ...KEPT, deadLetters: [deadLetter] })
      await commit([], { sent: [{ added: ['p1'], removed: [] }] })
      const sent = { ...KEPT, sent: ['p1'] }
      expect(await kept()).toEqual(sent)
      expect(await open().givenUp(READER, ['p0', 'p1', 'p2'])).toEqual(['p1'])

      const again = effect('p1', { isRedelivered: true })
      await commit([effect('p1', { isRedelivered: true, error: new Error('still no luck') })])
      expect(await kept()).toEqual(sent)
      for (let call = 0; call < 2; call++) expect(await commit([again])).toEqual({ outcomes: [undefined] })
      expect(written()).toEqual(['p1'])
      expect(await kept()).toEqual({ ...KEPT, redelivered: ['p1'] })
      expect(await open().givenUp(READER, ['p1'])).toEqual([])

      // The log has removed it, so it cannot come again.
      await commit([], { sent: [{ added: [], removed: ['p1'] }] })
      expect(await kept()).toEqual(KEPT)
      await expect(commit([effect('p2'), again])).rejects.toBeInstanceOf(EffectError)
      expect(written()).toEqual(['p1'])
    })

    it('of a dead letter leave none for the log, also if it was not reported that the log has it', async () => {
      const { effect, commit, kept, written } = await taken()
      const deadLetter = deadLetterAt('p1')
      await commit([{ positions: ['p1'], isRedelivered: false, deadLetter }])
      await commit([effect('p1', { isRedelivered: true, error: new Error('no luck') })])
      expect(await kept()).toEqual({ ...KEPT, deadLetters: [deadLetter] })
      await commit([effect('p1', { isRedelivered: true })])

      expect(written()).toEqual(['p1'])
      expect(await kept()).toEqual({ ...KEPT, redelivered: ['p1'] })
    })

    it('of a dead letter that is given up again do not happen', async () => {
      const { commit, kept } = await taken()
      const giveUp = (deadLetter: NewDeadLetter | undefined) =>
        commit([{ positions: ['p1'], isRedelivered: true, deadLetter }])
      await commit([{ positions: ['p1'], isRedelivered: false, deadLetter: deadLetterAt('p1') }])
      await giveUp(deadLetterAt('p1', 2))
      expect(await kept()).toEqual({ ...KEPT, deadLetters: [deadLetterAt('p1', 2)] })
      // Not handled, so its row stays.
      await commit([], { sent: [{ added: ['p1'], removed: ['p1'] }] })
      await giveUp(undefined)

      expect(await kept()).toEqual({ ...KEPT, redelivered: ['p1'] })
    })

    it('have the states of a copy of the log beside their own, until either is taken', async () => {
      const { open, effect, commit, kept, written } = await taken()
      const { moved } = open()
      if (moved === undefined) throw new Error('its consumers can be moved')
      const letters = ['p1', 'p2', 'p3'].map((position) => deadLetterAt(position))
      await commit(
        letters.map((deadLetter) => ({ positions: [deadLetter.position], isRedelivered: false, deadLetter })),
      )
      await commit([effect('p2', { isRedelivered: true })], { sent: [{ added: ['p2', 'p3'], removed: [] }] })
      const own = { ...KEPT, deadLetters: [letters[0]], redelivered: ['p2'], sent: ['p3'] }
      expect(await kept()).toEqual(own)
      const copied = {
        state: { cursor: 'q0', acknowledged: ['q9'] },
        applied: [],
        deadLetters: [deadLetterAt('q1')],
        redelivered: ['q2'],
        sent: ['q3'],
      }
      const part = 'consumer.0:ledger'
      const seen: unknown[] = []
      const store = () =>
        moved.store(READER, [READER, part], (states, earlier) => {
          seen.push([Object.fromEntries(states), Object.fromEntries(earlier)])
          return new Map([[part, copied]])
        })
      await store()
      await store()
      expect(seen).toEqual([
        [{ [READER]: own }, {}],
        [{ [READER]: own }, { [part]: copied }],
      ])
      expect(await moved.peek(part)).toEqual(copied)
      expect(await moved.peek(READER)).toBeUndefined()
      expect(await kept()).toEqual(own)

      // Its copy would not have the effect.
      await expect(commit([effect('p5')])).rejects.toBeInstanceOf(FencedError)
      expect(await open().take(fence(3))).toEqual(own)
      expect(await moved.peek(part)).toBeUndefined()
      await expect(moved.take({ name: part, token: 1 })).rejects.toBeInstanceOf(FencedError)
      await commit([effect('p5')], {}, 3)
      expect(written()).toEqual(['p2', 'p5'])

      await store()
      expect(await moved.take({ name: part, token: 1 })).toEqual(copied)
      expect(await open().peek(part)).toEqual(copied)
      expect(await kept()).toBeUndefined()
      await expect(commit([effect('p6')], {}, 3)).rejects.toBeInstanceOf(FencedError)
    })

    it('of a consumer happen once for each entry, over failures, restarts and dead letters', async () => {
      const { open, write, written } = fresh()
      const store = memoryStore()
      await append(
        store,
        Array.from({ length: 20 }, (_, n) => change(String(n))),
      )
      const log = await openLog(store)
      onTestFinished(() => log.close())
      const failures = new Map([
        ['3', 1],
        ['7', Infinity],
      ])
      const effect = ({ id }: Entry, connection: Connection) => {
        const left = failures.get(id) ?? 0
        failures.set(id, left - 1)
        if (left > 0) throw new Error(`no luck with ${id}`)
        return write(connection, id)
      }
      const run = async (count: number) => {
        const job = log.consume(
          'ledger',
          { deadLetters: 'log', retries: 1, initialDelay: 1 },
          exactlyOnceIn(open(), { effect }),
        )
        while (written().length < count) await Promise.race([turn(), job.done])
        await job.stop()
      }
      await run(10)
      await run(19)
      failures.clear()
      expect(await log.deadLetters('ledger').redeliver('all')).toBe(1)
      await run(20)

      expect(written().toSorted((a, b) => Number(a) - Number(b))).toEqual(
        Array.from({ length: 20 }, (_, n) => String(n)),
      )
      expect(await log.deadLetters('ledger').count()).toBe(0)
    })
  })
}
