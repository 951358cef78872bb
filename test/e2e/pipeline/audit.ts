import { isAtLeastAsComplete } from '../../../src/protocol/event.ts'
import type { ExpectedEvent } from './expected-events.ts'
import { isFilteredOut } from './pipeline-process.ts'
import type { Setup } from './pipeline-process.ts'
import type { ScriptedService } from './service.ts'
import type { Disk } from './storage.ts'
import type { Recorder } from './recorder.ts'

/** The position of a stream, by its name in a checkpoint. */
type Positions = (stream: string) => string | undefined

/** Compares the events of the service with those that were handled and saved. */
export class Audit {
  readonly #service: ScriptedService
  readonly #recorder: Recorder
  readonly #disk: Disk
  readonly #setup: Setup
  /** The events that the service dropped before the client reached them. */
  readonly #forgotten: ExpectedEvent[] = []

  constructor(service: ScriptedService, recorder: Recorder, disk: Disk, setup: Setup) {
    this.#service = service
    this.#recorder = recorder
    this.#disk = disk
    this.#setup = setup
    service.expectedEvents.onForgotten = (expected) => {
      if (this.#mustReport(expected)) this.#forgotten.push(expected)
    }
  }

  /** Whether nothing is left to do. */
  isIdle(positions: Positions): boolean {
    if (!this.#service.sender.idle || this.missing().length > 0) return false
    return !this.#hasWebhooks && this.#behind(positions).length === 0
  }

  /** The events that should have been handled, or reported by a gap, but were not. */
  missing(): string[] {
    const lost = this.#service.expectedEvents.events.filter((expected) =>
      this.#isMissing(expected, this.#completenessOf(expected)),
    )
    const unreported = this.#forgotten.filter(
      (expected) => this.#isMissing(expected, 0) && !this.#recorder.hasGap(expected.source),
    )
    const name = ({ keys }: ExpectedEvent) => [...keys].join(', ')
    return [
      ...lost.map((expected) => `lost: ${name(expected)}`),
      ...unreported.map((expected) => `dropped without a gap: ${name(expected)}`),
    ]
  }

  /** What is not saved after a graceful stop. */
  leftOver(): string[] {
    const behind = this.#behind((stream) => this.#disk.positions.get(stream))
    return this.#hasWebhooks ? [...behind, 'webhooks wait'] : behind
  }

  /** Whether the client must report that the service dropped this event. */
  #mustReport({ lost }: ExpectedEvent): boolean {
    // Only a position shows that there were events before. Without one, the group's own count shows that runs are missing: an
    // IncompleteStreamError, after a patience that exceeds a simulation.
    return [...lost].some((stream) => this.#disk.positions.has(stream))
  }

  /** Whether the watch never completes. Webhooks alone do not keep it alive after its groups are done. */
  get #isEndless(): boolean {
    const { groups, monitors } = this.#service
    return monitors.length > 0 || groups.length === 0
  }

  /** Whether webhooks wait that the pipeline must handle. */
  get #hasWebhooks(): boolean {
    return this.#setup.webhooks && this.#isEndless && this.#disk.waiting > 0
  }

  /** The completeness of the event at the service; undefined where the service does not have it. */
  #completenessOf({ streams, accepted }: ExpectedEvent): number | undefined {
    const emitted = [...streams.values()]
    if (accepted !== undefined && this.#setup.webhooks && this.#isEndless) emitted.push(accepted)
    return emitted.length === 0 ? undefined : emitted.reduce((all, one) => all | one)
  }

  /** Whether the event had to be handled in this completeness, but was not. */
  #isMissing({ keys }: ExpectedEvent, emitted: number | undefined): boolean {
    if (emitted === undefined || [...keys].some((key) => isFilteredOut(this.#setup, key))) return false
    const handled = this.#recorder.handledOf(keys)
    return handled === undefined || !isAtLeastAsComplete(handled, emitted)
  }

  /** The streams that are not at their end. A group or monitor that drops events may end before. */
  #behind(positions: Positions): string[] {
    const { groups, monitors } = this.#service
    const read = (stream: string): { readonly cursor?: string; readonly mark?: string } =>
      // The seen entries follow in the next line.
      JSON.parse(positions(stream)?.split('\n', 1)[0] ?? '{}')
    const behind: string[] = []
    const compare = (stream: string, position: unknown, end: unknown) => {
      if (position !== end) behind.push(`${stream} is at ${position} instead of ${end}`)
    }
    for (const { events, runs, script } of groups) {
      if (script.forgets.length > 0) continue
      for (const { stream, end } of [events, runs]) {
        const { cursor } = read(stream)
        compare(stream, cursor === undefined ? -1 : Number(cursor.split('.')[2]), end)
      }
    }
    for (const { stream, newest, script } of monitors) {
      if (script.forgets.length === 0) compare(stream, read(stream).mark, newest)
    }
    return behind
  }
}
