import type { AlertCause } from '../../protocol/alert.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import type { AlertEvent } from '../evaluate/in-memory.ts'
import { EventCounter } from './event-counts.ts'
import type { EventCounts } from './event-counts.ts'
import { momentOf } from './simulated-time.ts'

/** The alerts that rules would have fired. */
export interface BacktestReport {
  /** The time of the first event, in Unix ms; null without events. */
  readonly from: number | null
  /** The end of the time that passed, in Unix ms; null without events. */
  readonly to: number | null
  /** Number of events, without the ticks of a log. */
  readonly events: number
  /** How many events there were when. */
  readonly counts: EventCounts
  /** The rules, in the order of the rule set. */
  readonly rules: readonly BacktestRule[]
  /** The episodes, in the order in which they began to fire. */
  readonly episodes: readonly BacktestEpisode[]
  /** Number of episodes that are not in {@link episodes}. */
  readonly omitted: number
  /** When it was not known whether a rule holds. The first 1,000. */
  readonly unknown: readonly BacktestUnknown[]
}

/** The alerts that one rule would have fired. */
export interface BacktestRule {
  readonly rule: string
  readonly group: string | null
  /** How often it fired. */
  readonly fired: number
  readonly resolved: number
  /** Number of alerts that are firing at the end. */
  readonly firing: number
  /** Number of events that were late. */
  readonly late: number
  /** How often it was not known whether it holds. */
  readonly unknown: number
  /** The time in which its alerts were firing, in ms, added up. */
  readonly duration: number
}

/** An alert from its beginning to its end. Times in Unix ms. */
export interface BacktestEpisode {
  readonly rule: string
  readonly group: string | null
  readonly key: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** The value that the condition had measured when it fired. */
  readonly value: number | string | null
  /** When its condition began to hold. */
  readonly since: number
  /** When it fired. */
  readonly fired: number
  /** When it was resolved, in Unix ms; null if it is firing at the end. */
  readonly resolved: number | null
  readonly reason: string | null
  /** The events that caused it, at most 20. */
  readonly events: readonly AlertCause[]
}

/** A time at which it was not known whether a rule holds. */
export interface BacktestUnknown {
  readonly rule: string
  readonly key: Readonly<Record<string, string>>
  /** Time, Unix ms. */
  readonly at: number
  readonly reason: string
}

const MAX_EPISODES = 10_000
const MAX_UNKNOWN = 1_000

type Changing<Type> = { -readonly [Name in keyof Type]: Type[Name] }

/** Adds up what rules emit. It keeps the alerts that fire, and a bounded number of episodes. */
export class Recorder {
  readonly #rules: ReadonlyMap<string, Changing<BacktestRule>>
  readonly #episodes: Changing<BacktestEpisode>[] = []
  readonly #firing = new Map<string, Changing<BacktestEpisode>>()
  readonly #unknown: BacktestUnknown[] = []
  readonly #counter = new EventCounter()
  #omitted = 0
  #events = 0
  #from = Infinity
  #to = -Infinity

  constructor(rules: readonly CompiledRule[]) {
    const none = { fired: 0, resolved: 0, firing: 0, late: 0, unknown: 0, duration: 0 }
    this.#rules = new Map(rules.map(({ name, group }) => [name, { rule: name, group, ...none }]))
  }

  /** An event came. @param at Unix ms. */
  event(at: number): void {
    this.#events++
    this.#counter.add(at)
    this.#from = Math.min(this.#from, at)
    this.passed(at)
  }

  /** Time passed up to this moment, in Unix ms. */
  passed(at: number): void {
    this.#to = Math.max(this.#to, at)
  }

  alert(event: AlertEvent): void {
    const rule = this.#rules.get(event.data.alert)
    if (rule === undefined) return
    const at = momentOf(event)
    switch (event.type) {
      case 'alert.firing':
        rule.fired++
        return this.#fired(event.data, at)
      case 'alert.resolved':
        rule.resolved++
        return this.#resolved(rule, event.data, at)
      case 'alert.unknown': {
        const { key, reason, alert } = event.data
        rule.unknown++
        if (this.#unknown.length < MAX_UNKNOWN) this.#unknown.push({ rule: alert, key, at, reason })
        return
      }
      case 'alert.late':
        rule.late += event.data.count
    }
  }

  report(): BacktestReport {
    const [from, to] = this.#events === 0 ? [null, null] : [this.#from, this.#to]
    const rules = Array.from(this.#rules.values(), (rule) => ({ ...rule }))
    const byName = new Map(rules.map((rule) => [rule.rule, rule]))
    for (const episode of this.#firing.values()) {
      const rule = byName.get(episode.rule)
      if (rule === undefined) continue
      rule.firing++
      rule.duration += Math.max(0, this.#to - episode.fired)
    }
    return {
      from,
      to,
      events: this.#events,
      counts: this.#counter.counts,
      rules,
      episodes: this.#episodes.map((episode) => ({ ...episode })),
      omitted: this.#omitted,
      unknown: [...this.#unknown],
    }
  }

  #fired(data: Extract<AlertEvent, { type: 'alert.firing' }>['data'], at: number): void {
    const { alert, group, key, labels, annotations, value, since, events, episode: id } = data
    const episode: Changing<BacktestEpisode> = {
      rule: alert,
      group,
      key,
      labels,
      annotations,
      value,
      since: Date.parse(since),
      fired: at,
      resolved: null,
      reason: null,
      events,
    }
    this.#firing.set(id, episode)
    if (this.#episodes.length < MAX_EPISODES) this.#episodes.push(episode)
    else this.#omitted++
  }

  #resolved(
    rule: Changing<BacktestRule>,
    { episode: id, reason }: Extract<AlertEvent, { type: 'alert.resolved' }>['data'],
    at: number,
  ): void {
    const episode = this.#firing.get(id)
    if (episode === undefined) return
    this.#firing.delete(id)
    episode.resolved = at
    episode.reason = reason
    rule.duration += Math.max(0, at - episode.fired)
  }
}
