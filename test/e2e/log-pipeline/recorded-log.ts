import type { ResearchEvent } from 'rivulet'
import type { Entry, Position } from 'rivulet/log'
import type { Fence, LogStore, StreamAppend } from '../../../src/log/store/contract.ts'
import { completeness, isAtLeastAsComplete } from '../../../src/protocol/event.ts'
import { keyOf } from '../pipeline/expected-events.ts'
import type { ExpectedEvent } from '../pipeline/expected-events.ts'
import type { ScriptedService } from '../pipeline/service.ts'
import type { Trace } from './trace.ts'

/** Types of events of the log itself, which come at any time. */
export const OF_LOG: ReadonlySet<string> = new Set(['source.live', 'source.lost', 'log.tick'])

/** Types of events that the service does not send. */
const UNORDERED: ReadonlySet<string> = new Set([...OF_LOG, 'stream.gap', 'source.failed'])

/** Under which the audit reads. */
const READER = 'consumer:audit'

/** Reads the log as it grows, and compares it with the events of the service. */
export class RecordedLog {
  /** In the order of the log. */
  readonly entries: Entry[] = []
  /** The number of entries that the log has deleted. */
  deleted = 0
  /** Called for each source that failed. */
  onSourceFailed: () => void = () => {}
  readonly #store: LogStore
  readonly #service: ScriptedService
  readonly #trace: Trace
  /** Whether the log keeps the order of a stream over its sources. */
  readonly #isOneSequence: boolean
  /** Whether the log deletes entries. */
  readonly #deletes: boolean
  readonly #indexes = new Map<Position, number>()
  readonly #latest = new Map<string, Entry>()
  /** The completeness of all revisions together. */
  readonly #completeness = new Map<string, number>()
  readonly #gaps = new Set<string>()
  /** The number of the last entry of each stream, and of each source within it where only that is ordered. */
  readonly #reached = new Map<string, number>()
  /** Upstream positions, by the names of streams. */
  readonly #positions = new Map<string, string>()
  /** The events that the service dropped before they were recorded. */
  readonly #forgotten: ExpectedEvent[] = []
  /** Webhooks whose events could not be fetched. */
  readonly #notExpanded = new Set<string>()
  /** Ids of webhooks that are stored and not recorded. */
  #pending: readonly string[] = []
  #position: Position | undefined
  /** Its claim as a consumer, so that nothing is deleted before it is read. */
  #fence: Fence | undefined

  constructor(
    store: LogStore,
    service: ScriptedService,
    trace: Trace,
    { isOneSequence, deletes }: { readonly isOneSequence: boolean; readonly deletes: boolean },
  ) {
    this.#deletes = deletes
    this.#store = store
    this.#service = service
    this.#trace = trace
    this.#isOneSequence = isOneSequence
    service.expectedEvents.onForgotten = (expected) => {
      if (this.#mustReport(expected)) this.#forgotten.push(expected)
    }
  }

  /** The service has refused to return the events of a webhook for good. */
  notExpanded(key: string): void {
    this.#trace.log(`cannot expand ${key}`)
    this.#notExpanded.add(key)
    const expected = this.#service.expectedEvents.find(key)
    if (expected !== undefined) expected.isRefused = true
  }

  /** Reads on to the end. */
  async read(): Promise<void> {
    const pending = await this.#store.inbox.pending(null, 100)
    this.#pending = pending.map(({ id }) => id)
    const store = this.#store
    this.#fence ??= await store.claim(READER)
    const expect = this.#position ?? null
    let position = expect ?? (await store.positionAt('start'))
    for (;;) {
      const page = await store.read(position, { limit: 100 })
      if (page.gap !== undefined) this.#trace.report(`deleted before it was read: up to ${page.gap.to}`)
      for (const entry of page.entries) this.#add(entry)
      position = page.position
      if (page.isEnd) break
    }
    if (position !== expect) await store.commit(this.#fence, { expect, cursor: position, acknowledged: [] })
    this.#position = position
    this.deleted = this.indexOf(await store.positionAt('start')) ?? 0
  }

  /** An append had its effect. */
  appended(appends: readonly StreamAppend[]): void {
    for (const { fence, position, entries } of appends) {
      const keys = entries.map(({ event }) => event.id)
      this.#trace.log(`appends ${keys.join(', ')} of ${fence.name}, and moves it to ${position}`)
      if (position !== undefined) this.#positions.set(fence.name, position)
    }
  }

  /** The number of entries up to this position; undefined where they are not read yet. */
  indexOf(position: Position): number | undefined {
    return this.#indexes.get(position)
  }

  /** The events that are missing in the log. */
  missing(): string[] {
    const lost = this.#service.expectedEvents.events.filter((expected) =>
      this.#isMissing(expected, completenessAtService(expected)),
    )
    const unreported = this.#forgotten.filter(
      (expected) => this.#isMissing(expected, 0) && !this.#gaps.has(expected.source),
    )
    const name = ({ keys }: ExpectedEvent) => [...keys].join(', ')
    return [
      ...lost.map((expected) => `lost: ${name(expected)}`),
      ...unreported.map((expected) => `dropped without a gap: ${name(expected)}`),
      ...this.#pending.map((id) => `still in the inbox: ${id}`),
    ]
  }

  /** The streams whose positions are not at their ends. A group or monitor that drops events may end before. */
  behind(): string[] {
    const behind: string[] = []
    const compare = (stream: string, position: unknown, end: unknown) => {
      if (position !== end) behind.push(`${stream} is at ${position} instead of ${end}`)
    }
    for (const { events, runs, script } of this.#service.groups) {
      if (script.forgets.length > 0) continue
      for (const { stream, end } of [events, runs]) {
        const { cursor } = this.#upstream(stream)
        compare(stream, cursor === undefined ? -1 : Number(cursor.split('.')[2]), end)
      }
    }
    for (const { stream, newest, script } of this.#service.monitors) {
      if (script.forgets.length === 0) compare(stream, this.#upstream(stream).mark, newest)
    }
    return behind
  }

  #add(entry: Entry): void {
    const { position, revision, recorded } = entry
    const key = keyOf(entry)
    const last = this.entries.at(-1)
    if (last !== undefined && this.#isOneSequence && recorded < last.recorded)
      this.#trace.report(`recorded before the entry before it: ${key}`)
    const earlier = this.#latest.get(key)
    if (revision !== (earlier?.revision ?? 0) + 1)
      this.#trace.report(`revision ${revision} follows ${earlier?.revision}: ${key}`)
    if (earlier !== undefined) this.#checkRevision(earlier, entry)
    if (JSON.stringify(entry.data).includes('\u{fffd}')) this.#trace.report(`corrupted: ${key}`)
    this.#checkOrigin(entry, key)
    if (revision === 1) this.#checkOrder(entry, key)
    if (this.#indexes.has(position)) this.#trace.report(`two entries have the position of ${key}`)
    this.entries.push(entry)
    this.#indexes.set(position, this.entries.length)
    this.#latest.set(key, entry)
    this.#completeness.set(key, (this.#completeness.get(key) ?? 0) | completeness(entry))
    if (entry.type === 'stream.gap') this.#gaps.add(entry.source)
    if (entry.type === 'source.failed') this.onSourceFailed()
  }

  /** A revision is more complete, and has everything that the earlier one has. */
  #checkRevision(earlier: Entry, later: Entry): void {
    const [before, after] = [completeness(earlier), completeness(later)]
    // Of a revision that is deleted, nothing is left to be merged.
    const isMore = this.#deletes ? !isAtLeastAsComplete(before, after) : isAtLeastAsComplete(after, before)
    if (before === after || !isMore)
      this.#trace.report(
        `revision ${later.revision} has completeness ${after} after ${before}: ${keyOf(later)}`,
      )
  }

  /** Streams and polls are recorded in the order of the service. */
  #checkOrder(entry: Entry, key: string): void {
    if (UNORDERED.has(entry.type) || entry.via === 'webhook') return
    const [stream, index] = this.#placeOf(entry, key)
    if (index === undefined) return
    const name = this.#isOneSequence ? stream : `${stream} ${entry.source}`
    if ((this.#reached.get(name) ?? -1) >= index) this.#trace.report(`out of order: ${key}`)
    this.#reached.set(name, index)
  }

  /** The stream of an event and its number there; undefined where no order is promised. */
  #placeOf({ source, cursor }: ResearchEvent, key: string): readonly [string, number | undefined] {
    const { monitors, groups } = this.#service
    const monitor = monitors.find((one) => source === one.source)
    if (monitor !== undefined) {
      // Where offsets shift over dropped events, the order is not known.
      const isOrdered = monitor.script.cursors === 'event' || monitor.script.forgets.length === 0
      return [monitor.id, isOrdered ? monitor.indexOf(key) : undefined]
    }
    const [stream = '', , index] = cursor?.split('.') ?? []
    const group = groups.find(({ id }) => source.endsWith(`/${id}`) || source.includes(`/${id}-r`))
    // A renumbered event may follow one with an old number.
    const isOrdered = index !== undefined && group?.script.forgets.length === 0
    return [`${group?.id} ${stream}`, isOrdered ? Number(index) : undefined]
  }

  #checkOrigin(entry: Entry, key: string): void {
    if (OF_LOG.has(entry.type)) return
    // The script refuses some requests.
    const isSound =
      entry.type === 'source.failed'
        ? entry.data.error.name === 'PermissionError'
        : entry.type === 'stream.gap'
          ? this.#service.forgets(entry.source)
          : this.#service.expectedEvents.find(key) !== undefined || this.#isUnexpanded(entry, key)
    if (!isSound) this.#trace.report(`not an event of the service: ${key} ${JSON.stringify(entry.data)}`)
  }

  /** Whether it is the webhook of an execution whose events the service did not return. */
  #isUnexpanded({ type, via, data }: Entry, key: string): boolean {
    const isWebhook = type === 'unknown' && via === 'webhook'
    return isWebhook && (this.#service.mayBeEmpty(data) || this.#notExpanded.has(key))
  }

  /** Whether the log must have a gap for this event, which the service dropped. */
  #mustReport({ lost }: ExpectedEvent): boolean {
    // Only a position shows that there were events before. Without one, the group's own count shows that runs are missing: an
    // IncompleteStreamError, after a patience that exceeds a simulation.
    return [...lost].some((stream) => {
      const { cursor, mark } = this.#upstream(stream)
      return (cursor ?? mark) !== undefined
    })
  }

  /** Whether the event had to be recorded in this completeness, but was not. */
  #isMissing({ keys }: ExpectedEvent, expected: number | undefined): boolean {
    if (expected === undefined) return false
    const found = [...keys].flatMap((key) => this.#completeness.get(key) ?? [])
    // Two keys of one event are two entries, since the service renumbered it.
    const recorded = found.reduce((all, one) => all | one, 0)
    return found.length === 0 || !isAtLeastAsComplete(recorded, expected)
  }

  #upstream(stream: string): { readonly cursor?: string; readonly mark?: string } {
    // The seen entries follow in the next line.
    const parsed = JSON.parse(this.#positions.get(`stream:${stream}`)?.split('\n', 1)[0] ?? '{}')
    // A monitor without events has a position too.
    return parsed.mark === null ? {} : parsed
  }
}

/** The completeness of the event at the service; undefined where the service does not have it. */
function completenessAtService({ streams, accepted, sent, isRefused }: ExpectedEvent): number | undefined {
  const emitted = [...streams.values()]
  const posted = isRefused ? sent : accepted
  if (posted !== undefined) emitted.push(posted)
  return emitted.length === 0 ? undefined : emitted.reduce((all, one) => all | one)
}
