import { isAtLeastAsComplete } from '../../../src/protocol/event.ts'
import type { Fact } from './ledger.ts'
import { isFilteredOut } from './life.ts'
import type { Setup } from './life.ts'
import type { ScriptedService } from './service.ts'
import type { Disk } from './storage.ts'
import type { Witness } from './witness.ts'

/** Where a stream stands, by its name in a checkpoint. */
type Positions = (stream: string) => string | undefined

/** Holds what the service told against what was handled and kept. */
export class Audit {
  readonly #service: ScriptedService
  readonly #witness: Witness
  readonly #disk: Disk
  readonly #setup: Setup
  /** What was forgotten while the client stood before it. */
  readonly #forgotten: Fact[] = []

  constructor(service: ScriptedService, witness: Witness, disk: Disk, setup: Setup) {
    this.#service = service
    this.#witness = witness
    this.#disk = disk
    this.#setup = setup
    service.ledger.onForgotten = (fact) => {
      if (this.#mustTell(fact)) this.#forgotten.push(fact)
    }
  }

  /** Whether nothing is left to do. */
  isAtRest(positions: Positions): boolean {
    if (!this.#service.postman.idle || this.missing().length > 0) return false
    return !this.#hasWebhooks && this.#behind(positions).length === 0
  }

  /** What should have been handled, or told to be lost, and was not. */
  missing(): string[] {
    const lost = this.#service.ledger.facts.filter((fact) => this.#isMissing(fact, this.#toldOf(fact)))
    const unsaid = this.#forgotten.filter(
      (fact) => this.#isMissing(fact, 0) && !this.#witness.hasGap(fact.source),
    )
    const name = ({ keys }: Fact) => [...keys].join(', ')
    return [
      ...lost.map((fact) => `lost: ${name(fact)}`),
      ...unsaid.map((fact) => `forgotten, and no gap says so: ${name(fact)}`),
    ]
  }

  /** What the disk has still to be told of, now that the process has ended in good order. */
  leftOver(): string[] {
    const behind = this.#behind((stream) => this.#disk.positions.get(stream))
    return this.#hasWebhooks ? [...behind, 'webhooks wait'] : behind
  }

  /** Whether the client has to find out that the service has forgotten this. */
  #mustTell({ lost }: Fact): boolean {
    // Only a position says that there was something before. Without one, the group's own count says that runs are missing:
    // an IncompleteStreamError, after a patience that is longer than a play.
    return [...lost].some((stream) => this.#disk.positions.has(stream))
  }

  /** Whether the watch has no end. Webhooks do not keep one alive whose groups are done. */
  get #isEndless(): boolean {
    const { groups, monitors } = this.#service
    return monitors.length > 0 || groups.length === 0
  }

  /** Whether webhooks wait that the pipeline has to be through with. */
  get #hasWebhooks(): boolean {
    return this.#setup.webhooks && this.#isEndless && this.#disk.waiting > 0
  }

  /** What the service tells of a fact, as parts; undefined where it tells nothing. */
  #toldOf({ places, accepted }: Fact): number | undefined {
    const told = [...places.values()]
    if (accepted !== undefined && this.#setup.webhooks && this.#isEndless) told.push(accepted)
    return told.length === 0 ? undefined : told.reduce((all, one) => all | one)
  }

  /** Whether something that was told of the fact was not handled, although it had to be. */
  #isMissing({ keys }: Fact, told: number | undefined): boolean {
    if (told === undefined || [...keys].some((key) => isFilteredOut(this.#setup, key))) return false
    const handled = this.#witness.handledOf(keys)
    return handled === undefined || !isAtLeastAsComplete(handled, told)
  }

  /** The streams that do not stand at their end. Where something is forgotten, a stream may end before. */
  #behind(positions: Positions): string[] {
    const { groups, monitors } = this.#service
    const read = (stream: string): { readonly cursor?: string; readonly mark?: string } =>
      // The seen entries follow in the next line.
      JSON.parse(positions(stream)?.split('\n', 1)[0] ?? '{}')
    const behind: string[] = []
    const compare = (stream: string, place: unknown, end: unknown) => {
      if (place !== end) behind.push(`${stream} stands at ${place} and not at ${end}`)
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
