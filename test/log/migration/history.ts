import * as fc from 'fast-check'
import type { ResearchEvent } from 'rivulet'
import { runEvent } from '../../../src/protocol/event.ts'
import { checkpointOf } from '../../../src/log/process/progress.ts'
import { NO_HOLDS } from '../../../src/streams/holds.ts'
import type { Fence, LogStore, Position } from '../../../src/log/store/contract.ts'
import type { TimerChange } from '../../../src/streams/timers.ts'
import { change, taskRun } from '../../operators/events.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

/** The names of a history. */
export const STREAM = 'stream "with\ud800 strange\0 name'
export const CONSUMER = 'consumer:billing'
export const PROCESS = 'process:alerts'
export const VIEW = 'process:view'
const SOURCES = ['/v1/monitors/even', '/v1/monitors/odd']

const KEYS = ['a', 'b', '"quoted', 'lone \ud800', 'zero \0', '']

/** A step of a history. Numbers choose among what there is. */
type Step =
  | {
      readonly do: 'append'
      readonly events: readonly EventChoice[]
      readonly isBackfill: boolean
      readonly done: number
    }
  | {
      readonly do: 'consume'
      readonly cursor: number
      readonly ahead: readonly number[]
      readonly letter: number
    }
  | {
      readonly do: 'process'
      readonly name: typeof PROCESS | typeof VIEW
      readonly places: readonly number[]
      readonly states: readonly (readonly [key: number, state: number | null])[]
      readonly timers: readonly (readonly [key: number, name: number, due: number | null])[]
      readonly isReset: boolean
      readonly isMigrating: boolean
      readonly output: number
    }
  | { readonly do: 'redeliver'; readonly which: number }
  | { readonly do: 'remove letter'; readonly which: number }
  | { readonly do: 'trim'; readonly count: number }
  | { readonly do: 'forget'; readonly source: number }
  | { readonly do: 'webhook'; readonly id: number }

interface EventChoice {
  readonly of: 'run' | 'monitor'
  readonly number: number
  readonly hasOutput: boolean
  readonly hasGroup: boolean
}

const small = fc.nat(20)

const eventChoice = fc.record<EventChoice>({
  of: fc.constantFrom('run', 'monitor'),
  number: fc.nat(15),
  hasOutput: fc.boolean(),
  hasGroup: fc.boolean(),
})

/** Steps of any kind; entries come first, since nothing can be done without them. */
export const histories: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        events: fc.array(eventChoice, { minLength: 1, maxLength: 8 }),
        isBackfill: fc.boolean(),
        done: small,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('consume' as const),
        cursor: small,
        ahead: fc.array(small, { maxLength: 4 }),
        letter: small,
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('process' as const),
        name: fc.constantFrom(PROCESS, VIEW),
        places: fc.array(small, { minLength: 4, maxLength: 4 }),
        states: fc.array(fc.tuple(fc.nat(KEYS.length - 1), fc.option(fc.nat(99))), { maxLength: 5 }),
        timers: fc.array(fc.tuple(fc.nat(KEYS.length - 1), fc.nat(2), fc.option(fc.nat(999))), {
          maxLength: 4,
        }),
        isReset: fc.boolean(),
        isMigrating: fc.boolean(),
        output: small,
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('redeliver' as const), which: small }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove letter' as const), which: small }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('trim' as const), count: fc.integer({ min: 1, max: 12 }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const), source: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('webhook' as const), id: fc.nat(8) }) },
  ),
  { minLength: 12, maxLength: 40 },
)

function eventOf({ of, number, hasOutput, hasGroup }: EventChoice): ResearchEvent {
  if (of === 'monitor') return change(`e${number}`, number % 2 === 0 ? 'even' : 'odd')
  return runEvent(
    {
      run: taskRun(`r${number % 5}`, 'completed', { taskgroup_id: hasGroup ? 'tgrp_1' : null }),
      output: hasOutput ? { type: 'text', content: 'found', basis: [] } : null,
      input: null,
    },
    'stream',
  )
}

/** What was done to a log, for what is to be known of it later. */
export interface Done {
  readonly events: ResearchEvent[]
  readonly webhooks: Set<string>
}

/** Does the steps to a log, and closes nothing. */
export class Historian {
  readonly done: Done = { events: [], webhooks: new Set() }
  readonly #log: LogStore
  readonly #fences = new Map<string, Fence>()
  /** Every position that the log has ever given, in its order. */
  readonly #positions: Position[] = []
  #upstream: string | null = null
  #steps = 0

  constructor(log: LogStore) {
    this.#log = log
  }

  async run(steps: readonly Step[]): Promise<Done> {
    this.#positions.push(await this.#log.positionAt('start'))
    await this.#fence('claimed alone')
    for (const step of steps) {
      this.#steps += 1
      await this.#do(step)
    }
    for (const fence of this.#fences.values()) await this.#log.release(fence)
    return this.done
  }

  async #do(step: Step): Promise<void> {
    const log = this.#log
    switch (step.do) {
      case 'append':
        return this.#append(step)
      case 'consume':
        return this.#consume(step)
      case 'process':
        return this.#process(step)
      case 'redeliver':
      case 'remove letter': {
        const letters = await log.deadLetters.list(CONSUMER, null, 100)
        const letter = letters[step.which % Math.max(letters.length, 1)]
        if (letter === undefined) return
        const { position } = letter.entry
        await log.deadLetters[step.do === 'redeliver' ? 'redeliver' : 'remove'](CONSUMER, position)
        return
      }
      case 'trim':
        await log.retention.trim({ limit: step.count })
        return
      case 'forget':
        await log.retention.forget(SOURCES[step.source] ?? '')
        return
      case 'webhook': {
        const id = `msg_${step.id}`
        await log.inbox.put(
          { id, timestamp: step.id, payload: { type: 'x', id } },
          `{"type":"x", "id":"${id}"}`,
        )
        this.done.webhooks.add(id)
      }
    }
  }

  async #append({ events: choices, isBackfill, done }: Step & { readonly do: 'append' }): Promise<void> {
    const events = choices.map(eventOf)
    const fence = await this.#fence(STREAM)
    const position = `upstream ${this.#steps}`
    const pending = await this.#log.inbox.pending(null, 100)
    const webhook = pending[done % (pending.length + 1)]
    const entries = events.map((event) => newEntry(event, isBackfill))
    await this.#log.append(
      [{ fence, expect: this.#upstream, position, entries }],
      webhook === undefined ? [] : [webhook.id],
    )
    this.#upstream = position
    this.done.events.push(...events)
    await this.#readOn()
  }

  async #consume({ cursor: at, ahead, letter }: Step & { readonly do: 'consume' }): Promise<void> {
    const expect = (await this.#log.reader(CONSUMER))?.cursor ?? null
    const last = expect === null ? 0 : this.#positions.indexOf(expect)
    const index = Math.min(last + (at % 3), this.#positions.length - 1)
    const acknowledged = [...new Set(ahead.map((each) => index + 2 + each))]
      .toSorted((a, b) => a - b)
      .flatMap((each) => this.#positions[each] ?? [])
    const failed = this.#positions[1 + (letter % this.#positions.length)]
    await this.#log.commit(await this.#fence(CONSUMER), {
      expect,
      cursor: this.#at(index),
      acknowledged,
      deadLetters:
        failed === undefined
          ? []
          : [{ position: failed, error: { name: 'TypeError', message: 'no\0 \ud800' }, attempts: 3 }],
    })
  }

  async #process(step: Step & { readonly do: 'process' }): Promise<void> {
    const { name, places, states, timers, isReset, isMigrating, output } = step
    const expect = (await this.#log.reader(name))?.cursor ?? null
    const last = expect === null ? 0 : this.#positions.indexOf(expect)
    const [start = 0, rebuild = 0, within = 0, step0 = 0] = places
    const end = await this.#log.processes.end(name)
    const isKept = !isReset && (await this.#log.reader(name))?.process?.checkpoint !== undefined
    const caused = this.done.events[output % (this.done.events.length + 1)]
    const own = caused && {
      ...change(`output-${this.#steps}`, name),
      cause: { process: name, source: caused.source, id: caused.id, revision: 1, hops: 1 },
    }
    if (own !== undefined) this.done.events.push(own)
    await this.#log.commit(await this.#fence(name), {
      expect,
      cursor: this.#at(Math.min(last + (step0 % 4), this.#positions.length - 1)),
      acknowledged: [],
      process: {
        checkpoint: checkpointOf({
          version: 1,
          start: this.#at(start % this.#positions.length),
          clocks: { event: start, recorded: rebuild, complete: start % 2 === 0, holds: NO_HOLDS },
          rebuild: rebuild % 2 === 0 ? this.#at(rebuild % this.#positions.length) : undefined,
          within:
            within % 2 === 0
              ? { position: this.#at(within % this.#positions.length), key: 'k', isGap: within % 4 === 0 }
              : undefined,
          migration:
            isMigrating && isKept
              ? { from: 1, after: await this.#log.processes.start(), until: end }
              : undefined,
        }),
        reset: isReset,
        holdsRetention: name === PROCESS,
        state: states.map(([key, state]) => ({
          key: KEYS[key] ?? '',
          state: state === null ? null : JSON.stringify({ state }),
        })),
        timers: timers.map(timerOf),
      },
      entries: own === undefined ? [] : [newEntry(own)],
    })
    await this.#readOn()
  }

  #at(index: number): Position {
    return this.#positions[index] ?? this.#positions[0] ?? ''
  }

  async #fence(name: string): Promise<Fence> {
    const fence = this.#fences.get(name) ?? (await this.#log.claim(name))
    this.#fences.set(name, fence)
    return fence
  }

  /** Notes new positions. */
  async #readOn(): Promise<void> {
    for (let after = this.#positions.at(-1) ?? ''; ;) {
      const page = await this.#log.read(after, { limit: 1_000 })
      this.#positions.push(...page.entries.map(({ position }) => position).filter((each) => each !== after))
      if (page.isEnd) return
      after = page.position
    }
  }
}

function timerOf([key, timer, due]: readonly [key: number, timer: number, due: number | null]): TimerChange {
  const named = { key: KEYS[key] ?? '', name: `timer ${timer}` }
  if (due === null) return { ...named, due }
  return {
    ...named,
    due,
    clock: timer === 0 ? 'event' : 'recorded',
    cause: `[${due}]`,
    data: due % 3 === 0 ? `"${due}"` : null,
  }
}
