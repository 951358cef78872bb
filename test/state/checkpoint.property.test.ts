import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import type { ResearchEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { isAtLeastAsComplete, completeness } from '../../src/protocol/event.ts'
import { openCheckpoint } from '../../src/state/checkpoint.ts'
import type { Checkpoint } from '../../src/state/checkpoint.ts'
import type { CheckpointStore } from '../../src/state/checkpoint-store.ts'
import { CheckpointError } from '../../src/state/errors.ts'
import { memoryCheckpointStore } from '../../src/state/memory-checkpoint-store.ts'
import { bareRun, fullRun, webhookRun } from '../operators/events.ts'

/** What a service tells: streams in their order, and webhooks that wait in the inbox until they are done. */
interface World {
  readonly streams: readonly (readonly ResearchEvent[])[]
  readonly inbox: Set<readonly ResearchEvent[]>
}

/** Runs whose events the pipeline filters out. */
const FILTERED = /^r[37]:/

/** One process: what `watch`, `dedupe` and `deliver` do with a checkpoint, step by step. */
class Life {
  /** What was handled, each time. */
  readonly handled: ResearchEvent[] = []
  /** Handled and not known to be saved. */
  unsaved = 0
  /** What was handled and not saved, or at work, when the pipeline was subscribed to again. */
  retold = 0
  readonly #pulse
  /** Whether an operator between `watch` and `deliver` holds everything back. */
  readonly #late: boolean
  readonly #world: World
  readonly #checkpoint: Checkpoint
  #told = new Map<string, number>()
  #read: number[] = []
  #waiting: (readonly ResearchEvent[])[] = []
  readonly #inFlight: ResearchEvent[] = []
  #end: () => void

  static async begin(world: World, store: CheckpointStore, late: boolean): Promise<Life> {
    const pulse = { stopped: false }
    const checkpoint = await openCheckpoint({
      load: () => store.load(),
      save(changes) {
        if (pulse.stopped) throw new Error('killed')
        return store.save(changes)
      },
      close: () => store.close(),
    })
    return new Life(world, checkpoint, pulse, late)
  }

  constructor(world: World, checkpoint: Checkpoint, pulse: { stopped: boolean }, late: boolean) {
    this.#world = world
    this.#late = late
    this.#checkpoint = checkpoint
    this.#pulse = pulse
    this.#end = this.#subscribe()
  }

  /** The pipeline fails and is subscribed to again. Its handlers are still at work. */
  retry(): void {
    this.retold += this.#inFlight.length + this.unsaved
    this.#end()
    this.#end = this.#subscribe()
  }

  /** Reads on in a stream; false at its end. */
  readStream(i: number): boolean {
    const read = this.#read[i] ?? 0
    const event = this.#world.streams[i]?.[read]
    if (event === undefined) return false
    this.#read[i] = read + 1
    const copy = { ...event }
    this.#checkpoint.entered(`s${i}`, String(read + 1), copy)
    this.#emit(copy)
    return true
  }

  /** Takes a webhook from the inbox; false where none waits. */
  takeWebhook(): boolean {
    const webhook = this.#waiting.shift()
    if (webhook === undefined) return false
    const events = webhook.map((event) => ({ ...event }))
    this.#checkpoint.delivered(events, () => {
      if (!this.#pulse.stopped) this.#world.inbox.delete(webhook)
    })
    for (const event of events) this.#emit(event)
    return true
  }

  /** A handler gets through; false where none is at work. */
  handle(pick: number): boolean {
    const [event] = this.#inFlight.splice(pick % (this.#inFlight.length || 1), 1)
    if (event === undefined) return false
    if (this.#late) {
      if (!this.#isRefused(event)) throw new Error('an event came late, and was not refused')
      return true
    }
    this.handled.push(event)
    this.unsaved += 1
    this.#checkpoint.handled(event).then(
      () => (this.unsaved -= 1),
      // Killed: nobody is left to hear of it.
      () => {},
    )
    return true
  }

  /** Reads, takes and handles all that is left. Returns whether every position is at the end of its stream. */
  async finish(): Promise<boolean> {
    const streams = [...this.#world.streams.keys()]
    while (streams.some((i) => this.readStream(i)) || this.takeWebhook() || this.handle(0)) await nextTurn()
    this.#end()
    await this.#checkpoint.close()
    return streams.every((i) => Number(this.#checkpoint.position(`s${i}`) ?? 0) === this.#read[i])
  }

  kill(): void {
    this.#pulse.stopped = true
    this.#end()
  }

  #subscribe(): () => void {
    const end = this.#checkpoint.begin()
    this.#told = new Map(Array.from(this.#checkpoint.handledBefore, ({ id, parts: told }) => [id, told]))
    this.#read = this.#world.streams.map((_, i) => Number(this.#checkpoint.position(`s${i}`) ?? 0))
    this.#waiting = [...this.#world.inbox]
    return end
  }

  #isRefused(event: ResearchEvent): boolean {
    try {
      this.#checkpoint.received(event)
      return false
    } catch (error) {
      return error instanceof CheckpointError
    }
  }

  #emit(event: ResearchEvent): void {
    const told = this.#told.get(event.id)
    if (told === undefined || !isAtLeastAsComplete(told, completeness(event))) {
      this.#told.set(event.id, (told ?? 0) | completeness(event))
      if (!FILTERED.test(event.id)) {
        if (!this.#late) this.#checkpoint.received(event)
        this.#inFlight.push(event)
      }
    }
    this.#checkpoint.passed(event)
  }
}

const copy = fc
  .record({ run: fc.nat(7), full: fc.boolean() })
  .map(({ run, full }) => (full ? fullRun(`r${run}`) : bareRun(`r${run}`)))
const webhook = fc.array(fc.nat(7), { maxLength: 3 }).map((runs) => runs.map((run) => webhookRun(`r${run}`)))
const world = fc.record({
  streams: fc.array(fc.array(copy, { maxLength: 12 }), { minLength: 1, maxLength: 3 }),
  webhooks: fc.array(webhook, { maxLength: 6 }),
})
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('read' as const), pick: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('webhook' as const), pick: fc.constant(0) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('handle' as const), pick: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('turn' as const), pick: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('retry' as const), pick: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), pick: fc.constant(0) }) },
)

const history = fc.record({
  /** So many lives at first have the mistake of an operator that holds everything back. */
  late: fc.nat(2),
  steps: fc.array(step, { maxLength: 80 }),
})

describe('a process that is killed at any moment, and its pipeline retried at any other', () => {
  it('loses nothing, and handles again only what was not saved', async () => {
    await fc.assert(
      fc.asyncProperty(world, history, async ({ streams, webhooks }, { late, steps }) => {
        // Read by the last life alone: nothing is saved where all seems to be filtered out.
        const last = [fullRun('last')]
        const theWorld = { streams: [...streams, last], inbox: new Set(webhooks) }
        const store = memoryCheckpointStore()
        const lives = [await Life.begin(theWorld, store, late > 0)]
        const restart = async () => {
          lives.at(-1)?.kill()
          await store.close()
          lives.push(await Life.begin(theWorld, store, lives.length < late))
        }
        for (const { do: what, pick } of steps) {
          const life = lives.at(-1)
          if (what === 'read') life?.readStream(pick % streams.length)
          else if (what === 'webhook') life?.takeWebhook()
          else if (what === 'handle') life?.handle(pick)
          else if (what === 'turn') await nextTurn()
          else if (what === 'retry') life?.retry()
          else await restart()
        }
        while (lives.length <= late) await restart()
        const isAtEnd = await lives.at(-1)?.finish()

        const handled = lives.flatMap((life) => life.handled)
        const wanted = [...streams.flat(), ...webhooks.flat()].filter(({ id }) => !FILTERED.test(id))
        for (const event of wanted) {
          const told = handled
            .filter(({ id }) => id === event.id)
            .reduce((all, one) => all | completeness(one), 0)
          expect(
            handled.some(({ id }) => id === event.id) && isAtLeastAsComplete(told, completeness(event)),
          ).toBe(true)
        }
        const repeated = handled.length - new Set(handled.map(saying)).size
        const killed = lives.slice(0, -1).reduce((sum, { unsaved }) => sum + unsaved, 0)
        const retold = lives.reduce((sum, life) => sum + life.retold, 0)
        expect(repeated).toBeLessThanOrEqual(killed + retold)
        expect(isAtEnd).toBe(true)
        expect(theWorld.inbox.size).toBe(0)
      }),
    )
  })
})

/** The fact, and how much this copy says of it. */
function saying(event: ResearchEvent): string {
  return `${event.id} ${completeness(event)}`
}
