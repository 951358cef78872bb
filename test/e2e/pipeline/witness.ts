import type { ResearchEvent } from 'rivulet'
import { isAtLeastAsComplete, completeness } from '../../../src/protocol/event.ts'
import { keyOf } from './ledger.ts'
import type { ScriptedService } from './service.ts'

/** One event that came to a handler. */
interface Handling {
  readonly key: string
  readonly parts: number
  readonly subscription: number
  /** Whether the handler got through. */
  ended: boolean
  /** Whether `deliver` let go of it, since that is saved. */
  over: boolean
}

/** Sees what is handled, and notes what must not be. */
export class Witness {
  readonly violations: string[] = []
  readonly story: string[] = []
  readonly #service: ScriptedService
  readonly #keyed: boolean
  readonly #now: () => number
  readonly #handlings = new Map<string, Handling[]>()
  readonly #gaps = new Set<string>()
  readonly #effects = new Map<string, number>()
  #subscription = 0
  #current = new Map<ResearchEvent, Handling>()
  /** How far each stream was told within this subscription. */
  #reached = new Map<string, number>()
  /** Keys of the events of webhooks whose expansion was refused. */
  readonly #refused = new Set<string>()

  /** @param keyed Whether events come in order for each source by itself. */
  constructor(service: ScriptedService, keyed: boolean, now: () => number) {
    this.#service = service
    this.#keyed = keyed
    this.#now = now
  }

  tell(line: string): void {
    this.story.push(`${this.#now()}: ${line}`)
  }

  note(violation: string): void {
    this.tell(`VIOLATION ${violation}`)
    this.violations.push(violation)
  }

  /** A subscription begins; what the one before it has in flight is given up. */
  subscribed(): void {
    this.#subscription += 1
    this.#current = new Map()
    this.#reached = new Map()
    this.tell(`subscription ${this.#subscription}`)
  }

  get inFlight(): number {
    return [...this.#current.values()].filter(({ over }) => !over).length
  }

  /** What handlers got through with of the fact that has one of these keys, as parts; undefined for nothing. */
  handledOf(keys: Iterable<string>): number | undefined {
    let all: number | undefined
    for (const key of keys) {
      const ended = this.#handlings.get(key)?.filter((handling) => handling.ended) ?? []
      const effect = this.#effects.get(key)
      const told = [...ended.map((handling) => handling.parts), ...(effect === undefined ? [] : [effect])]
      if (told.length > 0) all = told.reduce((some, one) => some | one, all ?? 0)
    }
    return all
  }

  /** Whether a gap was told of this source. */
  hasGap(source: string): boolean {
    return this.#gaps.has(source)
  }

  /** What a webhook points to was refused for good. */
  refused(event: ResearchEvent): void {
    this.tell(`refused what is behind ${keyOf(event)}`)
    this.#refused.add(keyOf(event))
  }

  /** An event came to the handler, or came to it again. */
  began(event: ResearchEvent): void {
    if (this.#current.has(event)) return
    const key = keyOf(event)
    const told = completeness(event)
    this.tell(`begins ${key} (${told}) by ${event.via}`)
    const handlings = this.#handlings.get(key) ?? []
    const here = handlings.filter(({ subscription }) => subscription === this.#subscription)
    const before = handlings.filter(({ subscription, over }) => subscription !== this.#subscription && over)
    if (saysNoMore(here, told)) this.note(`told twice in one life: ${key}`)
    if (saysNoMore(before, told)) this.note(`told again in another life, although it was handled: ${key}`)
    const isBare = event.type === 'task_run.state' && event.data.output == null
    if (isBare && this.#service.hasOutput(event.data.run) && !this.#refused.has(key))
      this.note(`told without its output: ${key}`)
    if (JSON.stringify(event.data).includes('\u{fffd}')) this.note(`spoilt on the way: ${key}`)
    this.#checkOrder(event, key)
    this.#checkOrigin(event, key)
    const handling = { key, parts: told, subscription: this.#subscription, ended: false, over: false }
    this.#current.set(event, handling)
    this.#handlings.set(key, [...handlings, handling])
  }

  /** The handler got through. */
  ended(event: ResearchEvent): void {
    const handling = this.#current.get(event)
    // Of another life.
    if (handling === undefined) return
    handling.ended = true
    if (event.type === 'stream.gap') this.#gaps.add(event.source)
  }

  /** `deliver` emitted the event. */
  emitted(event: ResearchEvent): void {
    const handling = this.#current.get(event)
    if (handling?.ended !== true) this.note(`emitted, although it was not handled: ${keyOf(event)}`)
    if (handling !== undefined) handling.over = true
  }

  /** An effect took place that has to take place once. */
  took(event: ResearchEvent): void {
    const key = keyOf(event)
    const before = this.#effects.get(key)
    if (before !== undefined && isAtLeastAsComplete(before, completeness(event)))
      this.note(`its effect took place twice: ${key}`)
    this.#effects.set(key, (before ?? 0) | completeness(event))
  }

  /** What a poll or a stream tells comes in the order of the service. */
  #checkOrder(event: ResearchEvent, key: string): void {
    if (event.type === 'stream.gap' || event.via === 'webhook') return
    const [lane, place] = this.#placeOf(event, key)
    // Events of different keys take turns.
    const name = this.#keyed ? `${lane} ${event.source}` : lane
    if (place === undefined) return
    if ((this.#reached.get(name) ?? -1) >= place) this.note(`out of order: ${key}`)
    this.#reached.set(name, place)
  }

  /** Where an event stands, and in which order; undefined where none is promised. */
  #placeOf(
    { source, cursor }: ResearchEvent,
    key: string,
  ): readonly [lane: string, place: number | undefined] {
    const { monitors, groups } = this.#service
    const monitor = monitors.find((one) => source === one.source)
    if (monitor !== undefined) {
      // Where pages shift and lose what was on them, nobody can tell what came before what.
      const isOrdered = monitor.script.cursors === 'event' || monitor.script.forgets.length === 0
      return [monitor.id, isOrdered ? monitor.indexOf(key) : undefined]
    }
    const [stream = '', , index] = cursor?.split('.') ?? []
    const group = groups.find(({ id }) => source.endsWith(`/${id}`) || source.includes(`/${id}-r`))
    // A run that was asked for has no place in a stream, and what has a new number may come after what had an old one.
    const isOrdered = index !== undefined && group?.script.forgets.length === 0
    return [`${group?.id} ${stream}`, isOrdered ? Number(index) : undefined]
  }

  #checkOrigin(event: ResearchEvent, key: string): void {
    if (event.type === 'stream.gap' ? this.#service.forgets(event.source) : this.#service.ledger.find(key))
      return
    // The webhook of an execution whose events could not be had.
    if (event.type === 'unknown' && event.via === 'webhook') {
      if (!this.#service.mayBeEmpty(event.data) && !this.#refused.has(key))
        this.note(`told as it came: ${key}`)
    } else this.note(`nothing of the kind happened: ${key}`)
  }
}

/** Whether a copy that tells these parts says no more than those before it. */
function saysNoMore(handlings: readonly Handling[], told: number): boolean {
  return (
    handlings.length > 0 &&
    isAtLeastAsComplete(
      handlings.reduce((all, handling) => all | handling.parts, 0),
      told,
    )
  )
}
