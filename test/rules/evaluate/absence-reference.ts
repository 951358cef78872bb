/** Evaluates a rule about absence by its definition: at each move of the watermark, from what is known of each source. Shares no code with the engine. */
import type { PlainRule, PlainWindow, Sample } from './plain-rule.ts'
import type { Moment, Transition } from './reference.ts'

const MINUTE = 60_000

/** The transitions of each source, and what is said of all of them. */
export function absenceReference(
  rule: PlainRule,
  window: PlainWindow & { readonly kind: 'absence' },
  moments: readonly Moment[],
): readonly Transition[] {
  const gaps = moments
    .filter(({ sample }) => sample?.type === 'log.gap')
    .map(({ recorded }): Transition => ({ type: 'unknown', key: '{}', since: recorded, reason: 'gap' }))
  return [
    ...gaps,
    ...[...window.of].flatMap((source) => new OneSource(rule, window.within, source).run(moments)),
  ]
}

class OneSource {
  readonly #rule: PlainRule
  readonly #within: number
  readonly #source: string
  /** Before each of these times, it is not absent. None: it is not watched. */
  #notBefore: number[] = []
  #newest: Sample | undefined
  #isLost = false
  #isCancelled = false
  /** When the last entry was recorded that was deleted unread. */
  #gap = -Infinity
  /** Everything up to here has come. */
  #through = -Infinity
  #isComplete = true
  /** When it is looked at again whether everything has come. */
  #lookAt: number | undefined
  #unknown: string | undefined
  #alert: { since: number; fired: boolean; quiet?: number } | undefined
  readonly #out: Transition[] = []

  constructor(rule: PlainRule, within: number, source: string) {
    this.#rule = rule
    this.#within = within
    this.#source = source
  }

  run(moments: readonly Moment[]): readonly Transition[] {
    for (const moment of moments) {
      const { recorded, sample, through = this.#through, complete = this.#isComplete } = moment
      this.#isComplete = complete
      if (sample?.type === 'log.gap') this.#gap = recorded
      this.#through = Math.max(this.#through, Math.min(through, recorded))
      while (this.#change());
      if (sample?.source === this.#source) this.#event(sample, recorded)
    }
    return this.#out
  }

  /** The first change by time alone, if everything up to it has come. */
  #change(): boolean {
    const { for: wait, keepFiringFor, lateness } = this.#rule
    const alert = this.#alert
    const isSilent = alert !== undefined && alert.quiet === undefined
    const absent =
      this.#isLost || isSilent || this.#notBefore.length === 0 ? Infinity : Math.max(...this.#notBefore)
    const fires = alert === undefined || alert.fired ? Infinity : alert.since + wait
    const ends = alert?.quiet === undefined ? Infinity : alert.quiet + keepFiringFor
    if (this.#lookAt !== undefined && !this.#isLost) {
      if (this.#lookAt + lateness > this.#through) return false
      this.#lookAt = this.#isComplete ? undefined : this.#lookAt + MINUTE
      return true
    }
    const next = Math.min(absent, fires, ends)
    if (next + lateness > this.#through) return false
    if (next !== absent && next !== fires) {
      this.#end('condition', alert?.quiet ?? next)
    } else if (Math.max(...this.#notBefore) - this.#within < this.#gap) {
      this.#doubt('gap', this.#gap)
      this.#notBefore.push(this.#gap + this.#within)
    } else if (!this.#isComplete) {
      this.#doubt('incomplete', next)
      this.#lookAt = next + MINUTE
    } else {
      this.#unknown = undefined
      const isNew = alert === undefined
      this.#alert ??= { since: next, fired: false }
      delete this.#alert.quiet
      if (!this.#alert.fired && next >= this.#alert.since + wait) {
        this.#alert.fired = true
        this.#say('firing', next)
      } else if (isNew) this.#say('pending', next)
    }
    return true
  }

  #event(sample: Sample, now: number): void {
    const isWatched = this.#notBefore.length > 0
    if (sample.type !== 'unknown') this.#lookAt = undefined
    switch (sample.type) {
      case 'source.live':
        if (!isWatched) this.#notBefore.push(now + this.#within)
        else if (this.#isLost) this.#notBefore.push(now)
        if (this.#unknown === 'lost') this.#unknown = undefined
        this.#isLost = false
        this.#isCancelled = false
        return
      case 'source.lost':
        if (!isWatched) return
        this.#isLost = true
        return this.#doubt('lost', now)
      case 'stream.gap':
        if (!isWatched) return
        this.#doubt('gap', now)
        this.#notBefore.push(now + this.#within)
        return
      case 'monitor.cancelled':
        if (this.#alert?.fired === true) this.#end('cancelled', now)
        this.#alert = undefined
        this.#unknown = undefined
        this.#newest = undefined
        this.#notBefore = []
        this.#isLost = false
        this.#isCancelled = true
        return
      default:
        return this.#report(sample)
    }
  }

  #report(sample: Sample): void {
    const { when, lateness } = this.#rule
    const isReport = when === null || Math.floor(sample.fields.bits / 2 ** when.bit) % 2 === 1
    if (!isReport || this.#isCancelled) return
    if (this.#newest === undefined || sample.at >= this.#newest.at) this.#newest = sample
    if (sample.at + this.#within + lateness > this.#through) {
      if (!this.#isLost) {
        this.#unknown = undefined
        this.#lookAt = undefined
      }
      if (this.#alert?.fired === false) this.#alert = undefined
      if (this.#alert !== undefined) {
        const at = Math.max(sample.at, this.#alert.since)
        this.#alert.quiet ??= at
        if (at >= this.#alert.quiet + this.#rule.keepFiringFor) this.#end('condition', at)
      }
    }
    this.#notBefore.push(sample.at + this.#within)
  }

  /** It is not known whether it reports: what is pending is given up, and it is said once. */
  #doubt(reason: string, since: number): void {
    if (this.#alert?.fired === false) this.#alert = undefined
    if (this.#unknown === reason) return
    this.#unknown = reason
    this.#out.push({ type: 'unknown', key: this.#key, since, reason })
  }

  #end(reason: string, silentUntil: number): void {
    this.#say('resolved', this.#alert?.quiet ?? silentUntil, reason)
    this.#alert = undefined
  }

  #say(type: Exclude<Transition['type'], 'unknown'>, silentUntil: number, reason?: string): void {
    const since = this.#alert?.since ?? NaN
    const value = (silentUntil - since + this.#within) / 1_000
    const events = this.#newest === undefined ? [] : [this.#newest.id]
    const more = reason === undefined ? {} : { reason }
    this.#out.push({ type, key: this.#key, since, value, complete: true, events, ...more })
  }

  get #key(): string {
    return JSON.stringify({ source: this.#source })
  }
}
