import type { ResearchEvent } from 'rivulet'
import { isAtLeastAsComplete, completeness } from '../../../src/protocol/event.ts'
import { keyOf } from './expected-events.ts'
import type { ScriptedService } from './service.ts'

/** One event that a handler received. */
interface Handling {
  readonly key: string
  readonly completeness: number
  readonly subscription: number
  /** Whether the handler succeeded. */
  ended: boolean
  /** Whether `deliver` emitted it, since it is saved. */
  over: boolean
}

/** Records handled events, and reports violated rules. */
export class Recorder {
  readonly violations: string[] = []
  readonly trace: string[] = []
  readonly #service: ScriptedService
  readonly #keyed: boolean
  readonly #now: () => number
  readonly #handlings = new Map<string, Handling[]>()
  readonly #gaps = new Set<string>()
  readonly #effects = new Map<string, number>()
  #subscription = 0
  #current = new Map<ResearchEvent, Handling>()
  /** The position of each stream within this subscription. */
  #reached = new Map<string, number>()
  /** Keys of webhook events whose expansion was refused. */
  readonly #refused = new Set<string>()

  /** @param keyed Whether events arrive in order for each source separately. */
  constructor(service: ScriptedService, keyed: boolean, now: () => number) {
    this.#service = service
    this.#keyed = keyed
    this.#now = now
  }

  log(line: string): void {
    this.trace.push(`${this.#now()}: ${line}`)
  }

  report(violation: string): void {
    this.log(`VIOLATION ${violation}`)
    this.violations.push(violation)
  }

  /** A subscription starts; the events in flight of the previous one are abandoned. */
  subscribed(): void {
    this.#subscription += 1
    this.#current = new Map()
    this.#reached = new Map()
    this.log(`subscription ${this.#subscription}`)
  }

  get inFlight(): number {
    return [...this.#current.values()].filter(({ over }) => !over).length
  }

  /** The handled completeness of the event with one of these keys; undefined where it was not handled. */
  handledOf(keys: Iterable<string>): number | undefined {
    let all: number | undefined
    for (const key of keys) {
      const ended = this.#handlings.get(key)?.filter((handling) => handling.ended) ?? []
      const effect = this.#effects.get(key)
      const reached = [
        ...ended.map((handling) => handling.completeness),
        ...(effect === undefined ? [] : [effect]),
      ]
      if (reached.length > 0) all = reached.reduce((some, one) => some | one, all ?? 0)
    }
    return all
  }

  /** Whether a gap of this source was emitted. */
  hasGap(source: string): boolean {
    return this.#gaps.has(source)
  }

  /** The expansion of a webhook was refused permanently. */
  refused(event: ResearchEvent): void {
    this.log(`refused the expansion of ${keyOf(event)}`)
    this.#refused.add(keyOf(event))
  }

  /** The handler received an event, or received it again. */
  began(event: ResearchEvent): void {
    if (this.#current.has(event)) return
    const key = keyOf(event)
    const reached = completeness(event)
    this.log(`begins ${key} (${reached}) by ${event.via}`)
    const handlings = this.#handlings.get(key) ?? []
    const here = handlings.filter(({ subscription }) => subscription === this.#subscription)
    const before = handlings.filter(({ subscription, over }) => subscription !== this.#subscription && over)
    if (isNotMoreComplete(here, reached)) this.report(`emitted twice in one subscription: ${key}`)
    if (isNotMoreComplete(before, reached)) this.report(`emitted again, although it was handled: ${key}`)
    const isBare = event.type === 'task_run.state' && event.data.output == null
    if (isBare && this.#service.hasOutput(event.data.run) && !this.#refused.has(key))
      this.report(`emitted without its output: ${key}`)
    if (JSON.stringify(event.data).includes('\u{fffd}')) this.report(`corrupted: ${key}`)
    this.#checkOrder(event, key)
    this.#checkOrigin(event, key)
    const handling = {
      key,
      completeness: reached,
      subscription: this.#subscription,
      ended: false,
      over: false,
    }
    this.#current.set(event, handling)
    this.#handlings.set(key, [...handlings, handling])
  }

  /** The handler succeeded. */
  ended(event: ResearchEvent): void {
    const handling = this.#current.get(event)
    // An event of an earlier subscription.
    if (handling === undefined) return
    handling.ended = true
    if (event.type === 'stream.gap') this.#gaps.add(event.source)
  }

  /** `deliver` emitted the event. */
  emitted(event: ResearchEvent): void {
    const handling = this.#current.get(event)
    if (handling?.ended !== true) this.report(`emitted, although it was not handled: ${keyOf(event)}`)
    if (handling !== undefined) handling.over = true
  }

  /** An exactly-once effect happened. */
  effected(event: ResearchEvent): void {
    const key = keyOf(event)
    const before = this.#effects.get(key)
    if (before !== undefined && isAtLeastAsComplete(before, completeness(event)))
      this.report(`its effect happened twice: ${key}`)
    this.#effects.set(key, (before ?? 0) | completeness(event))
  }

  /** Events of a poll or a stream arrive in the order of the service. */
  #checkOrder(event: ResearchEvent, key: string): void {
    if (event.type === 'stream.gap' || event.via === 'webhook') return
    const [stream, position] = this.#positionOf(event, key)
    // Events of different keys may overtake each other.
    const name = this.#keyed ? `${stream} ${event.source}` : stream
    if (position === undefined) return
    if ((this.#reached.get(name) ?? -1) >= position) this.report(`out of order: ${key}`)
    this.#reached.set(name, position)
  }

  /** The stream of an event and its position in it; undefined where no order is guaranteed. */
  #positionOf(
    { source, cursor }: ResearchEvent,
    key: string,
  ): readonly [stream: string, position: number | undefined] {
    const { monitors, groups } = this.#service
    const monitor = monitors.find((one) => source === one.source)
    if (monitor !== undefined) {
      // Where offsets shift over dropped events, the order is not known.
      const isOrdered = monitor.script.cursors === 'event' || monitor.script.forgets.length === 0
      return [monitor.id, isOrdered ? monitor.indexOf(key) : undefined]
    }
    const [stream = '', , index] = cursor?.split('.') ?? []
    const group = groups.find(({ id }) => source.endsWith(`/${id}`) || source.includes(`/${id}-r`))
    // A fetched run has no position in a stream, and a renumbered event may follow one with an old number.
    const isOrdered = index !== undefined && group?.script.forgets.length === 0
    return [`${group?.id} ${stream}`, isOrdered ? Number(index) : undefined]
  }

  #checkOrigin(event: ResearchEvent, key: string): void {
    if (
      event.type === 'stream.gap'
        ? this.#service.forgets(event.source)
        : this.#service.expectedEvents.find(key)
    )
      return
    // The webhook of an execution without available events.
    if (event.type === 'unknown' && event.via === 'webhook') {
      if (!this.#service.mayBeEmpty(event.data) && !this.#refused.has(key))
        this.report(`not expanded: ${key}`)
    } else this.report(`not an event of the service: ${key}`)
  }
}

/** Whether an event is not more complete than those handled before. */
function isNotMoreComplete(handlings: readonly Handling[], reached: number): boolean {
  return (
    handlings.length > 0 &&
    isAtLeastAsComplete(
      handlings.reduce((all, handling) => all | handling.completeness, 0),
      reached,
    )
  )
}
