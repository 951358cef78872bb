import * as fc from 'fast-check'
import type { ResearchEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { completeness } from '../../src/protocol/event.ts'
import { CheckpointError } from '../../src/state/errors.ts'
import { ProgressLog } from '../../src/state/progress-log.ts'
import type { Place } from '../../src/state/progress-log.ts'
import { bareRun, change, fullRun, webhookRun } from '../operators/events.ts'

const [a, b, c] = [change('a'), change('b'), change('c')]

/** A log into which these events came by one stream, each in its turn received and not handled. */
function received(...events: readonly ResearchEvent[]): ProgressLog {
  const log = new ProgressLog()
  for (const event of events) {
    log.entered('s', event.id, event)
    log.received(event)
    log.passed(event)
  }
  return log
}

describe('a position', () => {
  it('is where the log began, until something is handled', () => {
    const log = new ProgressLog([['s', 'before']])
    log.entered('s', 'a', a)

    expect(log.position('s')).toBe('before')
    expect(log.position('another')).toBeUndefined()
    expect(log.advanced).toBe(false)
  })

  it('moves past what was handled in the order of the stream', () => {
    const log = received(a, b, c)

    log.handled(a)
    log.handled(b)

    expect(log.position('s')).toBe('b')
  })

  it('stands before what is not handled, and then moves past all that was handled behind it', () => {
    const log = received(a, b, c)

    log.handled(c)
    log.handled(b)
    const meanwhile = log.position('s')
    log.handled(a)

    expect(meanwhile).toBeUndefined()
    expect(log.position('s')).toBe('c')
  })

  it('moves past what was filtered out', () => {
    const log = received(a)
    log.entered('s', 'b', b)
    log.passed(b)

    log.handled(a)

    expect(log.position('s')).toBe('b')
  })

  it('stays where it was for a copy without a cursor, and moves on with the next', () => {
    const log = received(a)
    log.handled(a)
    log.entered('s', undefined, b)
    log.passed(b)
    const meanwhile = log.position('s')
    log.entered('s', 'c', c)
    log.passed(c)

    expect([meanwhile, log.position('s')]).toEqual(['a', 'c'])
  })

  it('is written as text when it is given out, and then of the last place alone', () => {
    const written: string[] = []
    const place = (name: string): Place => ({
      text() {
        written.push(name)
        return name
      },
    })
    const log = new ProgressLog()
    for (const event of [a, b, c]) {
      log.entered('s', place(event.id), event)
      log.received(event)
      log.passed(event)
    }
    log.handled(a)
    log.handled(b)
    const meanwhile = written.length
    const { positions } = log.take()

    expect([meanwhile, ...positions]).toEqual([0, ['s', 'b']])
    expect(log.position('s')).toBe('b')
    expect(written).toEqual(['b'])
  })

  it('is given out once for each time that it moved', () => {
    const log = received(a, b)
    log.handled(a)
    const moved = [...log.take().positions]
    const unmoved = [...log.take().positions]
    log.handled(b)

    expect([moved, unmoved, [...log.take().positions]]).toEqual([[['s', 'a']], [], [['s', 'b']]])
  })

  it('is each stream its own', () => {
    const log = new ProgressLog()
    log.entered('s', '1', a)
    log.entered('t', '2', b)
    log.received(b)
    log.passed(b)
    log.handled(b)

    expect([log.position('s'), log.position('t')]).toEqual([undefined, '2'])
  })

  it('does not move past an event that entered and has not been emitted yet', () => {
    const log = new ProgressLog()
    log.entered('s', 'a', a)
    log.entered('s', 'b', b)
    log.received(b)
    log.passed(b)
    log.handled(b)

    expect(log.position('s')).toBeUndefined()
  })

  it('does not move past a copy that is handled within its emission until that has returned', () => {
    const log = new ProgressLog()
    log.entered('s', 'a', a)
    log.received(a)
    log.handled(a)
    const meanwhile = log.advanced
    log.passed(a)

    expect(meanwhile).toBe(false)
    expect(log.take().handled).toEqual([{ id: a.id, source: a.source, parts: 0 }])
    expect(log.position('s')).toBe('a')
  })

  it('waits for every handler that received the event', () => {
    const log = new ProgressLog()
    const mapped = { ...a }
    log.entered('s', 'a', a)
    for (const event of [a, a, mapped]) log.received(event)
    log.passed(a)

    log.handled(a)
    log.handled(mapped)
    const meanwhile = log.position('s')
    log.handled(a)

    expect(meanwhile).toBeUndefined()
    expect(log.position('s')).toBe('a')
  })
})

describe('a second copy', () => {
  it('that was dropped while the first is in work is done with the first', () => {
    const log = received(a)
    log.entered('t', 'same', a)
    log.passed(a)
    const meanwhile = log.position('t')
    log.handled(a)

    expect(meanwhile).toBeUndefined()
    expect(log.position('t')).toBe('same')
  })

  it('that was dropped after the first was handled is done at once', () => {
    const log = received(a)
    log.handled(a)
    log.entered('t', 'same', a)
    log.passed(a)

    expect(log.position('t')).toBe('same')
  })

  it('that says more is not done before it was handled itself', () => {
    const log = received(bareRun('r'))
    const full = fullRun('r')
    log.entered('t', 'full', full)
    log.received(full)
    log.passed(full)
    const poorer = log.position('s')
    log.handled(full)

    expect(poorer).toBeUndefined()
    expect(log.position('t')).toBeUndefined()
  })

  it('that says more and waits for its turn is not done by the handling of the one that says less', () => {
    const log = new ProgressLog()
    const bare = bareRun('r')
    log.entered('s', 'full', fullRun('r'))
    log.entered('t', 'bare', bare)
    log.received(bare)
    log.passed(bare)
    log.handled(bare)

    expect([log.position('s'), log.position('t')]).toEqual([undefined, 'bare'])
    expect(log.take().handled).toEqual([{ id: bare.id, source: bare.source, parts: 0 }])
  })

  it('that says more and waited for its turn is done once it was handled itself', () => {
    const log = new ProgressLog()
    const [bare, full] = [bareRun('r'), fullRun('r')]
    log.entered('s', 'full', full)
    log.entered('t', 'bare', bare)
    for (const copy of [bare, full]) {
      log.received(copy)
      log.passed(copy)
      log.handled(copy)
    }

    expect([log.position('s'), log.position('t')]).toEqual(['full', 'bare'])
  })

  it('that says less is done with the one that says more', () => {
    const log = new ProgressLog()
    const full = fullRun('r')
    log.entered('s', 'bare', bareRun('r'))
    log.entered('t', 'full', full)
    log.received(full)
    log.passed(full)
    log.handled(full)

    expect([log.position('s'), log.position('t')]).toEqual(['bare', 'full'])
    expect(log.take().handled).toEqual([{ id: full.id, source: full.source, parts: completeness(full) }])
  })
})

describe('a webhook', () => {
  it('is done when each of its facts was handled or filtered out', () => {
    const log = new ProgressLog()
    const done = () => {}
    log.delivered([a, b], done)
    log.received(a)
    log.passed(a)
    log.passed(b)
    const meanwhile = log.take().done
    log.handled(a)

    expect(meanwhile).toEqual([])
    expect(log.take().done).toEqual([done])
  })

  it('that is held is done by the copy of a stream that came meanwhile', () => {
    const log = new ProgressLog()
    const done = () => {}
    const full = fullRun('r')
    log.delivered([webhookRun('r')], done)
    log.entered('s', 'full', full)
    log.received(full)
    log.passed(full)
    const meanwhile = log.take().done
    log.handled(full)

    expect(meanwhile).toEqual([])
    expect(log.take().done).toEqual([done])
  })

  it('without any event is done at once', () => {
    const log = new ProgressLog()
    const done = () => {}
    log.delivered([], done)

    expect(log.take().done).toEqual([done])
  })
})

describe('an event without a place', () => {
  it.each([
    ['was never told', (log: ProgressLog) => log.received(a), /has no place.*client\.watch/],
    [
      'comes after its emission',
      (log: ProgressLog) => {
        log.entered('s', 'a', a)
        log.passed(a)
        log.received(a)
      },
      /within its own emission.*delay/,
    ],
    [
      'comes after its emission, in which another handler received it',
      (log: ProgressLog) => {
        log.entered('s', 'a', a)
        log.received(a)
        log.passed(a)
        log.received({ ...a })
      },
      /within its own emission/,
    ],
    ['is handled and was not received', (log: ProgressLog) => log.handled(a), /not received/],
    [
      'is handled twice',
      (log: ProgressLog) => {
        log.entered('s', 'a', a)
        log.received(a)
        log.handled(a)
        log.handled(a)
      },
      /not received/,
    ],
    [
      'lost its id',
      (log: ProgressLog) => {
        const stripped: unknown = { data: 1 }
        log.received(stripped as ResearchEvent)
      },
      /without its `source` and `id`/,
    ],
  ])('is refused: it %s', (_, use, message) => {
    const log = new ProgressLog()

    expect(() => use(log)).toThrow(CheckpointError)
    expect(() => use(new ProgressLog())).toThrow(message)
  })
})

describe('begin', () => {
  it('waits no more for what streams told before, since they tell it again', () => {
    const log = received(a, b)
    log.begin()
    for (const event of [a, b]) {
      const again = { ...event }
      log.entered('s', event.id, again)
      log.received(again)
      log.passed(again)
      log.handled(again)
    }

    expect(log.position('s')).toBe('b')
  })

  it('notes what is handled from before, which moves nothing', () => {
    const log = received(a)
    log.begin()
    log.entered('s', 'a', a)
    log.handled(a)

    expect(log.take().handled).toEqual([{ id: a.id, source: a.source, parts: 0 }])
    expect(log.position('s')).toBeUndefined()
  })

  it('forgets the webhooks that are not done, since they come again', () => {
    const log = new ProgressLog()
    const again = { ...a }
    const [before, after] = [() => {}, () => {}]
    log.delivered([a, b], before)
    log.received(a)
    log.passed(a)
    log.begin()
    log.delivered([again, b], after)
    log.received(again)
    log.passed(again)
    log.passed(b)
    log.handled(again)

    expect(log.take().done).toEqual([after])
  })

  it('leaves a webhook that came again to the handler that has it now, whatever one from before says', () => {
    const log = new ProgressLog()
    const again = { ...a }
    const [before, after] = [() => {}, () => {}]
    log.delivered([a], before)
    log.received(a)
    log.passed(a)
    log.begin()
    log.delivered([again], after)
    log.received(again)
    log.passed(again)
    log.handled(a)
    const meanwhile = log.take()
    log.handled(again)

    expect(meanwhile).toMatchObject({ handled: [{ id: a.id, source: a.source }], done: [] })
    expect(log.take().done).toEqual([after])
  })

  it('has a copy wait for the handler that has the fact now, whatever one from before says', () => {
    const log = received(a)
    const again = { ...a }
    log.begin()
    log.entered('s', 'a', again)
    log.received(again)
    log.passed(again)
    log.handled(a)
    const duplicate = { ...a }
    log.entered('t', 'same', duplicate)
    log.passed(duplicate)
    const meanwhile = log.position('t')
    log.handled(again)

    expect(meanwhile).toBeUndefined()
    expect([log.position('s'), log.position('t')]).toEqual(['a', 'same'])
  })

  it('has an event that is received again handled once for each time', () => {
    const log = received(a)
    log.begin()
    log.entered('s', 'a', a)
    log.received(a)
    log.passed(a)
    log.handled(a)
    const position = log.position('s')
    log.handled(a)

    expect(position).toBe('a')
    expect(log.take().handled).toHaveLength(2)
    expect(() => log.handled(a)).toThrow(/not received/)
  })

  it('ends the emission that goes on', () => {
    const log = new ProgressLog()
    log.entered('s', 'a', a)
    log.received(a)
    const before = log.isReceived(a)
    log.begin()

    expect([before, log.isReceived(a)]).toEqual([true, false])
    expect(() => log.received(a)).toThrow(/has no place/)
  })

  it('within an emission has the rest of that emission move nothing', () => {
    const log = new ProgressLog()
    log.entered('s', 'a', a)
    log.received(a)
    log.begin()
    log.entered('s', 'a', { ...a })
    log.handled(a)
    const isReceived = log.isReceived(a)

    expect(isReceived).toBe(false)
    expect(log.position('s')).toBeUndefined()
  })
})

/** What may happen next: a number picks among whatever there is at that moment. */
type Step =
  | { readonly do: 'stream'; readonly stream: number; readonly fact: number; readonly full: boolean }
  | { readonly do: 'webhook'; readonly facts: readonly number[] }
  | { readonly do: 'release'; readonly pick: number }
  | { readonly do: 'handle'; readonly pick: number }

const fact = fc.nat(5)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('stream'), stream: fc.nat(2), fact, full: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('webhook'), facts: fc.array(fact, { maxLength: 3 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release'), pick: fc.nat() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('handle'), pick: fc.nat() }) },
)

interface ModelCopy {
  readonly event: ResearchEvent
  readonly stream?: string
  readonly cursor?: string
  readonly webhook?: ModelWebhook
  passed: boolean
  done: boolean
}

interface ModelWebhook {
  called: number
}

/**
 * A pipeline around a log, and beside it the plainest account of what has to come of it: every copy that was ever told,
 * looked through again after each step.
 */
class Pipeline {
  readonly log = new ProgressLog()
  readonly copies: ModelCopy[] = []
  readonly inFlight: ResearchEvent[] = []
  readonly webhooks: ModelWebhook[] = []
  readonly held: ResearchEvent[] = []
  readonly #told = new Map<string, number>()
  #cursor = 0

  /** How many handlers receive an event of this fact; none where it is filtered out. */
  static #handlers({ id }: ResearchEvent): number {
    return id.charCodeAt(1) % 3
  }

  take(next: Step): void {
    if (next.do === 'stream') {
      const event = next.full ? fullRun(`r${next.fact}`) : bareRun(`r${next.fact}`)
      const stream = `s${next.stream}`
      this.#cursor += 1
      this.log.entered(stream, String(this.#cursor), event)
      this.copies.push({ event, stream, cursor: String(this.#cursor), passed: false, done: false })
      this.#emit(event)
    } else if (next.do === 'webhook') {
      const events = next.facts.map((number) => webhookRun(`r${number}`))
      const webhook = { called: 0 }
      this.webhooks.push(webhook)
      this.log.delivered(events, () => void (webhook.called += 1))
      for (const event of events) this.copies.push({ event, webhook, passed: false, done: false })
      this.held.push(...events)
    } else if (next.do === 'release') {
      const [event] = this.held.splice(next.pick % (this.held.length || 1), 1)
      if (event !== undefined) this.#emit(event)
    } else {
      const [event] = this.inFlight.splice(next.pick % (this.inFlight.length || 1), 1)
      if (event !== undefined) this.log.handled(event)
    }
    for (const copy of this.copies) {
      copy.done ||= copy.passed && this.inFlight.every(({ id }) => id !== copy.event.id)
    }
    for (const done of this.log.take().done) void done()
  }

  /** The last cursor of a stream in front of which nothing is left. */
  expected(stream: string): string | undefined {
    const copies = this.copies.filter((copy) => copy.stream === stream)
    const open = copies.findIndex(({ done }) => !done)
    return copies.slice(0, open === -1 ? copies.length : open).at(-1)?.cursor
  }

  isDone(webhook: ModelWebhook): boolean {
    return this.copies.every((copy) => copy.webhook !== webhook || copy.done)
  }

  /** As `dedupe` does: what says no more than was told is dropped. */
  #emit(event: ResearchEvent): void {
    const told = this.#told.get(event.id) ?? -1
    const says = completeness(event)
    if (told === -1 || (says & ~told) !== 0) {
      this.#told.set(event.id, (told === -1 ? 0 : told) | says)
      for (let count = Pipeline.#handlers(event); count > 0; count--) {
        const own = { ...event }
        this.log.received(own)
        this.inFlight.push(own)
      }
    }
    this.log.passed(event)
    for (const copy of this.copies) {
      if (copy.event.id === event.id && (completeness(copy.event) & ~says) === 0) copy.passed = true
    }
  }
}

describe('whatever the order of things', () => {
  const streams = ['s0', 's1', 's2']

  it('a position is right behind the gap-free run of what is done, and a webhook done once all of it is', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pipeline = new Pipeline()
        for (const next of steps) {
          pipeline.take(next)
          for (const stream of streams) expect(pipeline.log.position(stream)).toBe(pipeline.expected(stream))
          for (const webhook of pipeline.webhooks) {
            expect(webhook.called).toBe(pipeline.isDone(webhook) ? 1 : 0)
          }
        }
      }),
    )
  })

  it('everything is behind it once everything is handled', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pipeline = new Pipeline()
        for (const next of steps) pipeline.take(next)
        while (pipeline.held.length > 0) pipeline.take({ do: 'release', pick: 0 })
        while (pipeline.inFlight.length > 0) pipeline.take({ do: 'handle', pick: 0 })

        for (const stream of streams) {
          const last = pipeline.copies.findLast((copy) => copy.stream === stream)
          expect(pipeline.log.position(stream)).toBe(last?.cursor)
        }
        expect(pipeline.webhooks.map(({ called }) => called)).toEqual(pipeline.webhooks.map(() => 1))
      }),
    )
  })
})
