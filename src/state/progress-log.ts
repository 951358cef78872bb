import { isAtLeastAsComplete, completeness } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { HandledFact } from './checkpoint-store.ts'
import { CheckpointError } from './errors.ts'
import { ShortLivedMap } from './short-lived-map.ts'

/** An event as far as a place is kept for it: whatever operators made of it, these two stay. */
export type Fact = Pick<ResearchEvent, 'id' | 'source'>

/** Called once each event that a webhook stands for was handled. */
export type Done = () => void | PromiseLike<void>

/**
 * Where a stream stands, as of one moment. It is written as text only when it is saved: of all the events between two saves,
 * for the last one alone.
 */
export interface Place {
  /** The cursor behind which the stream goes on. */
  text(): string
}

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
 * Each call takes the same short time on average, but for many copies of one fact, which are gone through one by one. What
 * is kept are the copies that are not done: those that are done but stand behind one that is not leave nothing but the last
 * cursor among them.
 */
export class ProgressLog {
  readonly #streams = new Map<string, Stream>()
  /** Streams whose position {@link take} did not give out yet. */
  #moved: Stream[] = []
  readonly #facts = new ShortLivedMap<string, FactState>()
  /**
   * The event that was looked for last, and its fact: most events enter, are received and pass in a row, and making and
   * finding a key takes as long as all the rest.
   */
  #sought: Fact | undefined
  #found: FactState | undefined
  /**
   * By the very event that was received: operators may have made it, and two of one fact may be on their way. Not weak, which
   * takes twice as long: no position moves past what a handler never says that it is through with, until {@link begin}.
   */
  readonly #received = new ShortLivedMap<object, Emission>()
  /** The same from before {@link begin}. Weak, since most handlers from then were given up. */
  readonly #receivedBefore = new WeakMap<object, Emission>()
  #handled: HandledFact[] = []
  #done: Done[] = []

  constructor(positions: Iterable<readonly [stream: string, cursor: string]> = []) {
    for (const [stream, position] of positions) this.#streams.set(stream, new Stream(stream, position))
  }

  /** Whether anything became final that {@link take} did not give out yet. */
  get advanced(): boolean {
    return this.#moved.length > 0 || this.#handled.length > 0 || this.#done.length > 0
  }

  /** Facts that were handled and that {@link take} did not give out yet. */
  get newlyHandled(): readonly HandledFact[] {
    return this.#handled
  }

  /** The cursor of the last copy in the gap-free run of those that are done. */
  position(stream: string): string | undefined {
    return this.#streams.get(stream)?.position
  }

  /** Gives out what became final since it was called last. */
  take(): Advance {
    const positions = new Map<string, string>()
    for (const stream of this.#moved) {
      stream.hasMoved = false
      if (stream.position !== undefined) positions.set(stream.name, stream.position)
    }
    const advance = { positions, handled: this.#handled, done: this.#done }
    this.#moved = []
    this.#handled = []
    this.#done = []
    return advance
  }

  /** A stream told a copy, behind which it stands at this cursor: where it stood before if there is none. */
  entered(stream: string, cursor: string | Place | undefined, event: ResearchEvent): void {
    this.#tell(event, this.#stream(stream).append(cursor, completeness(event)))
  }

  /** A webhook told a copy of each of these facts. */
  delivered(events: readonly ResearchEvent[], done: Done): void {
    if (events.length === 0) {
      this.#done.push(done)
      return
    }
    const webhook = { left: events.length, done }
    for (const event of events) this.#tell(event, new WebhookCopy(webhook, completeness(event)))
  }

  /** Whether somebody has received the event since its emission began. */
  isReceived(event: Fact): boolean {
    return this.#find(event)?.emission !== undefined
  }

  /** The emission of this copy has returned, or the copy was dropped because what it says was told. */
  passed(event: ResearchEvent): void {
    const fact = this.#find(event)
    if (fact === undefined) return
    const told = completeness(event)
    for (const copy of fact.copies) copy.passed ||= isAtLeastAsComplete(told, copy.parts)
    const emission = fact.emission
    fact.emission = undefined
    if (emission !== undefined) {
      emission.parts |= told
      emission.passed = true
      this.#settleEmission(emission)
    }
    this.#settleCopies(fact)
  }

  /**
   * The event came to a handler.
   *
   * @throws {CheckpointError} where no copy of it is on its way.
   */
  received(event: Fact): void {
    const fact = this.#find(event)
    if (fact === undefined || fact.copies.every(hasPassed)) throw noPlace(event)
    const again = this.#received.get(event)
    const emission = again ?? fact.emission ?? openEmission(fact, event)
    emission.left += 1
    if (again === undefined) this.#received.set(event, emission)
    else again.repeated.push(event)
  }

  /**
   * The event was handled.
   *
   * @throws {CheckpointError} where this very event was not received.
   */
  handled(event: Fact): void {
    const emission = this.#received.get(event) ?? this.#receivedBefore.get(event)
    if (emission === undefined) {
      throw new CheckpointError(`the event ${describe(event)} is to be handled, but was not received`)
    }
    emission.left -= 1
    const repeated = emission.repeated.indexOf(event)
    if (repeated !== -1) emission.repeated.splice(repeated, 1)
    else if (!this.#received.delete(event)) this.#receivedBefore.delete(event)
    this.#settleEmission(emission)
  }

  /**
   * All that is not done is told anew: streams begin behind their positions, and webhooks come again. What was received
   * before may still be handled, and is noted, but moves nothing and has no webhook done: that is up to the copies that
   * come now.
   */
  begin(): void {
    for (const stream of this.#streams.values()) stream.clear()
    for (const [, fact] of this.#facts.entries()) fact.forget()
    this.#facts.clear()
    this.#sought = this.#found = undefined
    for (const [event, emission] of this.#received.entries()) this.#receivedBefore.set(event, emission)
    this.#received.clear()
  }

  #stream(name: string): Stream {
    let stream = this.#streams.get(name)
    if (stream === undefined) {
      stream = new Stream(name)
      this.#streams.set(name, stream)
    }
    return stream
  }

  /** The fact of an event, of which a copy was told that is not done. */
  #find(event: Fact): FactState | undefined {
    if (event !== this.#sought) this.#remember(event, this.#facts.get(keyOf(event)))
    return this.#found
  }

  #remember(event: Fact, fact: FactState | undefined): void {
    this.#sought = event
    this.#found = fact
  }

  #tell(event: Fact, copy: Copy): void {
    const key = keyOf(event)
    let fact = this.#facts.get(key)
    if (fact === undefined) {
      fact = new FactState(key, copy)
      this.#facts.set(key, fact)
    } else {
      fact.copies.push(copy)
    }
    this.#remember(event, fact)
  }

  /** Its parts are known when it has passed, so one that was handled within that time ends then. */
  #settleEmission({ fact, id, source, left, parts: told, passed }: Emission): void {
    if (!passed || left > 0) return
    this.#handled.push({ id, source, parts: told })
    fact.emissions -= 1
    this.#settleCopies(fact)
  }

  #settleCopies(fact: FactState): void {
    if (fact.emissions > 0) return
    const { copies } = fact
    let left = 0
    for (const copy of copies) {
      if (copy.passed) this.#finish(copy)
      else copies[left++] = copy
    }
    copies.length = left
    if (left === 0 && !fact.isForgotten) this.#drop(fact)
  }

  #drop(fact: FactState): void {
    this.#facts.delete(fact.key)
    if (fact === this.#found) this.#found = undefined
  }

  #finish(copy: Copy): void {
    if (copy instanceof StreamCopy) {
      const { stream } = copy
      if (!stream.remove(copy) || stream.hasMoved) return
      stream.hasMoved = true
      this.#moved.push(stream)
      return
    }
    const { webhook } = copy
    webhook.left -= 1
    if (webhook.left === 0) this.#done.push(webhook.done)
  }
}

class FactState {
  readonly key: string
  /** What was told of it and is not done. */
  copies: Copy[]
  /** The emission that goes on right now, if somebody has received it. */
  emission: Emission | undefined
  /** Emissions that are not handled. */
  emissions = 0
  /** Whether nobody looks it up any more: only handlers that are still at work have it. */
  isForgotten = false

  constructor(key: string, copy: Copy) {
    this.key = key
    this.copies = [copy]
  }

  /** It has no copies to move any more. */
  forget(): void {
    this.copies = []
    this.isForgotten = true
  }
}

interface Emission {
  readonly fact: FactState
  readonly id: string
  readonly source: string
  /** How often something was received within it that is not handled. */
  left: number
  /** Events among that which were received before, once for each time more. */
  readonly repeated: object[]
  /** What its copy tells. */
  parts: number
  /** Whether it has returned. */
  passed: boolean
}

function openEmission(fact: FactState, { id, source }: Fact): Emission {
  const emission = { fact, id, source, left: 0, repeated: [], parts: 0, passed: false }
  fact.emission = emission
  fact.emissions += 1
  return emission
}

/** What a stream or a webhook told of a fact. */
type Copy = StreamCopy | WebhookCopy

function hasPassed({ passed }: Copy): boolean {
  return passed
}

interface Webhook {
  /** Copies that are not done. */
  left: number
  readonly done: Done
}

class WebhookCopy {
  readonly webhook: Webhook
  /** See `completeness` of the protocol. */
  readonly parts: number
  /** Whether it, or another copy that says as much, was emitted. */
  passed = false

  constructor(webhook: Webhook, told: number) {
    this.webhook = webhook
    this.parts = told
  }
}

/** A copy in the order of its stream, in a list of those that are not done. */
class StreamCopy {
  readonly stream: Stream
  /** See `completeness` of the protocol. */
  readonly parts: number
  /** Whether it, or another copy that says as much, was emitted. */
  passed = false
  /** The last cursor from this copy up to the next that is not done. */
  reach: string | Place | undefined
  before: StreamCopy | undefined
  after: StreamCopy | undefined

  constructor(
    stream: Stream,
    cursor: string | Place | undefined,
    told: number,
    before: StreamCopy | undefined,
  ) {
    this.stream = stream
    this.parts = told
    this.reach = cursor
    this.before = before
  }
}

class Stream {
  readonly name: string
  /** Whether its position is among those that were not given out yet. */
  hasMoved = false
  #position: string | Place | undefined
  #last: StreamCopy | undefined

  constructor(name: string, position?: string) {
    this.name = name
    this.#position = position
  }

  get position(): string | undefined {
    if (typeof this.#position === 'object') this.#position = this.#position.text()
    return this.#position
  }

  append(cursor: string | Place | undefined, told: number): StreamCopy {
    const copy = new StreamCopy(this, cursor, told, this.#last)
    if (this.#last !== undefined) this.#last.after = copy
    this.#last = copy
    return copy
  }

  /** Takes a copy out that is done. Returns whether the position moved. */
  remove(copy: StreamCopy): boolean {
    const { before, after, reach } = copy
    // Else a copy that has grown old would keep all that came after it from the quick collection of what is young.
    copy.before = copy.after = undefined
    if (after === undefined) this.#last = before
    else after.before = before
    if (before !== undefined) {
      before.after = after
      before.reach = reach ?? before.reach
      return false
    }
    if (reach === undefined) return false
    this.#position = reach
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
