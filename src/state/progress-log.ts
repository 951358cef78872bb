import { covers, parts } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { HandledFact } from './checkpoint-store.ts'
import { CheckpointError } from './errors.ts'

/** An event as far as a place is kept for it: whatever operators made of it, these two stay. */
export type Fact = Pick<ResearchEvent, 'id' | 'source'>

/** Called once each event that a webhook stands for was handled. */
export type Done = () => void | PromiseLike<void>

/** What became final since it was last asked. */
export interface Advance {
  /** Streams that moved, and the cursors behind which they go on now. */
  readonly positions: Map<string, string>
  readonly handled: HandledFact[]
  /** What to call once the rest is saved. */
  readonly done: Done[]
}

/** No step at all. */
export function noAdvance(): Advance {
  return { positions: new Map(), handled: [], done: [] }
}

/** Whether there is nothing to be saved, and nobody to be told. */
export function isEmpty({ positions, handled, done }: Advance): boolean {
  return positions.size === 0 && handled.length === 0 && done.length === 0
}

/**
 * Decides what of a pipeline is behind it.
 *
 *     stream a:   1 ✓   2 ✓   3 …   4 ✓   5 ✓   6 …        position: 2
 *                             └─ 3 is handled ─▶           position: 5
 *
 * Streams and webhooks tell *copies* of *facts*. A fact is handled in *emissions*: from the moment in which a copy of it
 * is received until everybody who received it has handled it. A copy is done once it has passed, or a copy that says as
 * much has, and no emission of its fact goes on. A stream's position moves past the copies that are done, from the first
 * on, up to the first that is not.
 *
 * Each call takes the same short time on average. What is kept are the copies that are not done: those that are done but
 * stand behind one that is not leave nothing but the last cursor among them.
 */
export class ProgressLog {
  readonly #streams = new Map<string, Stream>()
  readonly #facts = new Map<string, FactState>()
  /**
   * By the very event that was received: operators may have made it, and two of one fact may be on their way. Weak, since
   * a handler that was given up never says that it is through.
   */
  readonly #received = new WeakMap<object, Emission>()
  #advance = noAdvance()

  constructor(positions: Iterable<readonly [stream: string, cursor: string]> = []) {
    for (const [stream, position] of positions) this.#stream(stream).position = position
  }

  /** Whether anything became final that {@link take} did not give out yet. */
  get advanced(): boolean {
    return !isEmpty(this.#advance)
  }

  /** Facts that were handled and that {@link take} did not give out yet. */
  get newlyHandled(): readonly HandledFact[] {
    return this.#advance.handled
  }

  /** The cursor of the last copy in the gap-free run of those that are done. */
  position(stream: string): string | undefined {
    return this.#streams.get(stream)?.position
  }

  /** Gives out what became final since it was called last. */
  take(): Advance {
    const advance = this.#advance
    this.#advance = noAdvance()
    return advance
  }

  /** A stream told a copy. */
  entered(stream: string, cursor: string | undefined, event: ResearchEvent): void {
    const copy = this.#stream(stream).append(cursor)
    this.#fact(event).copies.push({ parts: parts(event), passed: false, origin: copy })
  }

  /** A webhook told a copy of each of these facts. */
  delivered(events: readonly ResearchEvent[], done: Done): void {
    if (events.length === 0) {
      this.#advance.done.push(done)
      return
    }
    const webhook = { left: events.length, done }
    for (const event of events) {
      this.#fact(event).copies.push({ parts: parts(event), passed: false, origin: webhook })
    }
  }

  /** Whether somebody has received the event since its emission began. */
  isReceived(event: Fact): boolean {
    return this.#facts.get(keyOf(event))?.emission !== undefined
  }

  /** The emission of this copy has returned, or the copy was dropped because what it says was told. */
  passed(event: ResearchEvent): void {
    const key = keyOf(event)
    const fact = this.#facts.get(key)
    if (fact === undefined) return
    const told = parts(event)
    for (const copy of fact.copies) copy.passed ||= covers(told, copy.parts)
    const emission = fact.emission
    fact.emission = undefined
    if (emission !== undefined) {
      emission.parts |= told
      emission.passed = true
      this.#settleEmission(emission)
    }
    this.#settleCopies(key, fact)
  }

  /**
   * The event came to a handler.
   *
   * @throws {CheckpointError} where no copy of it is on its way.
   */
  received(event: Fact): void {
    const key = keyOf(event)
    const fact = this.#facts.get(key)
    if (fact === undefined || fact.copies.every(({ passed }) => passed)) throw noPlace(event)
    const emission = this.#received.get(event) ?? fact.emission ?? this.#openEmission(key, fact, event)
    emission.events.push(event)
    this.#received.set(event, emission)
  }

  /**
   * The event was handled.
   *
   * @throws {CheckpointError} where this very event was not received.
   */
  handled(event: Fact): void {
    const emission = this.#received.get(event)
    if (emission === undefined) {
      throw new CheckpointError(`the event ${describe(event)} is to be handled, but was not received`)
    }
    emission.events.splice(emission.events.indexOf(event), 1)
    if (!emission.events.includes(event)) this.#received.delete(event)
    this.#settleEmission(emission)
  }

  /**
   * All that is not done is told anew: streams begin behind their positions, and webhooks come again. What was received
   * before may still be handled, and is noted, but moves nothing and has no webhook done: that is up to the copies that
   * come now.
   */
  begin(): void {
    for (const stream of this.#streams.values()) stream.clear()
    // Handlers that are still at work keep the old state, which nobody looks up any more and which has no copies to move.
    for (const fact of this.#facts.values()) fact.copies = []
    this.#facts.clear()
  }

  #stream(name: string): Stream {
    let stream = this.#streams.get(name)
    if (stream === undefined) {
      stream = new Stream(name)
      this.#streams.set(name, stream)
    }
    return stream
  }

  #fact(event: Fact): FactState {
    const key = keyOf(event)
    let fact = this.#facts.get(key)
    if (fact === undefined) {
      fact = { copies: [], emission: undefined, emissions: 0 }
      this.#facts.set(key, fact)
    }
    return fact
  }

  #openEmission(key: string, fact: FactState, { id, source }: Fact): Emission {
    const emission = { key, fact, id, source, events: [], parts: 0, passed: false }
    fact.emission = emission
    fact.emissions += 1
    return emission
  }

  /** Its parts are known when it has passed, so one that was handled within that time ends then. */
  #settleEmission({ key, fact, id, source, events, parts: told, passed }: Emission): void {
    if (!passed || events.length > 0) return
    this.#advance.handled.push({ id, source, parts: told })
    fact.emissions -= 1
    this.#settleCopies(key, fact)
  }

  #settleCopies(key: string, fact: FactState): void {
    if (fact.emissions > 0) return
    const { copies } = fact
    fact.copies = copies.filter(({ passed }) => !passed)
    if (fact.copies.length === 0 && this.#facts.get(key) === fact) this.#facts.delete(key)
    for (const { passed, origin } of copies) {
      if (passed) this.#finish(origin)
    }
  }

  #finish(origin: StreamCopy | Webhook): void {
    if (origin instanceof StreamCopy) {
      const { stream } = origin
      if (stream.remove(origin) && stream.position !== undefined) {
        this.#advance.positions.set(stream.name, stream.position)
      }
      return
    }
    origin.left -= 1
    if (origin.left === 0) this.#advance.done.push(origin.done)
  }
}

interface FactState {
  /** What was told of it and is not done. */
  copies: Copy[]
  /** The emission that goes on right now, if somebody has received it. */
  emission: Emission | undefined
  /** Emissions that are not handled. */
  emissions: number
}

interface Copy {
  /** See `parts` of the protocol. */
  readonly parts: number
  /** Whether it, or another copy that says as much, was emitted. */
  passed: boolean
  readonly origin: StreamCopy | Webhook
}

interface Emission {
  readonly key: string
  readonly fact: FactState
  readonly id: string
  readonly source: string
  /** What was received within it and is not handled. */
  readonly events: object[]
  /** What its copy tells. */
  parts: number
  /** Whether it has returned. */
  passed: boolean
}

interface Webhook {
  /** Copies that are not done. */
  left: number
  readonly done: Done
}

/** A copy in the order of its stream, in a list of those that are not done. */
class StreamCopy {
  readonly stream: Stream
  /** The last cursor from this copy up to the next that is not done. */
  reach: string | undefined
  before: StreamCopy | undefined
  after: StreamCopy | undefined

  constructor(stream: Stream, cursor: string | undefined, before: StreamCopy | undefined) {
    this.stream = stream
    this.reach = cursor
    this.before = before
  }
}

class Stream {
  readonly name: string
  position: string | undefined
  #last: StreamCopy | undefined

  constructor(name: string) {
    this.name = name
  }

  append(cursor: string | undefined): StreamCopy {
    const copy = new StreamCopy(this, cursor, this.#last)
    if (this.#last !== undefined) this.#last.after = copy
    this.#last = copy
    return copy
  }

  /** Takes a copy out that is done. Returns whether the position moved. */
  remove(copy: StreamCopy): boolean {
    const { before, after, reach } = copy
    if (after === undefined) this.#last = before
    else after.before = before
    if (before !== undefined) {
      before.after = after
      before.reach = reach ?? before.reach
      return false
    }
    if (reach === undefined) return false
    this.position = reach
    return true
  }

  clear(): void {
    this.#last = undefined
  }
}

function keyOf(event: Fact): string {
  if (typeof event.id !== 'string' || typeof event.source !== 'string') {
    throw new CheckpointError(
      'an event without its `source` and `id` came to the checkpoint: operators between `client.watch` and `deliver` ' +
        'may change everything else, but have to keep these two',
    )
  }
  return `${event.source}\n${event.id}`
}

function noPlace(event: Fact): CheckpointError {
  return new CheckpointError(
    `the event ${describe(event)} has no place in this checkpoint: it has to come from a \`client.watch\` with the same ` +
      'checkpoint, and to reach `deliver` within its own emission. Move what is asynchronous between them (`delay`, ' +
      '`observeOn`, `bufferTime`, `mergeMap` with a promise) into the handler',
  )
}

function describe({ id, source }: Fact): string {
  return `${JSON.stringify(id)} of ${source}`
}
