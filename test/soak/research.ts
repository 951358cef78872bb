import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createResearchService } from 'rivulet/service'
import type { Fault, Faults, Processor, ResearchService } from 'rivulet/service'
import { hasEnded } from './audit.ts'
import { formOf } from './plan.ts'
import type { PlannedFault } from './plan.ts'

/** Everything about the service that outlives its restarts. */
export interface ResearchSettings {
  readonly folder: string
  readonly apiKey: string
  readonly webhookSecret: string
  /** Runs that may end beyond those that were handled, so that there is always something going on. */
  readonly ahead: number
  /** Called with the input of each run when it ends. */
  readonly onMade?: (input: unknown) => void
}

/** The service of a soak: it has the faults that are armed, can be restarted, and makes events as fast as they are handled. */
export class Research {
  readonly #settings: ResearchSettings
  #service: ResearchService | undefined
  #port = 0
  #made = 0
  /** Until something is handled, nothing is made. */
  #allowed = 0
  #waiting: (() => void)[] = []
  #notes = 0
  /** How often the faults of each form may strike that were armed so far. */
  readonly #armed = new Map<string, number>()
  /** Strikes before the last restart. */
  #strikes = 0

  constructor(settings: ResearchSettings) {
    this.#settings = settings
  }

  get service(): ResearchService {
    if (this.#service === undefined) throw new Error('the service is not started')
    return this.#service
  }

  get url(): string {
    return this.service.url ?? ''
  }

  /** Starts it, at the same address as before if there was one. */
  async start(faults: readonly Fault[] = []): Promise<void> {
    const { folder, apiKey, webhookSecret } = this.#settings
    const docs = join(folder, 'docs')
    await mkdir(docs, { recursive: true })
    this.#service = await createResearchService({
      docs,
      data: join(folder, 'service.db'),
      apiKey,
      webhookSecret,
      processor: this.#processor,
      quotas: false,
      faults,
      concurrency: 16,
      // Webhook retries take seconds of the clock.
      speed: 100,
    })
    await this.#service.listen({ port: this.#port })
    this.#port = Number(new URL(this.url).port)
  }

  /** Stops it and starts it again over the same database, with the faults that have not struck yet. */
  async restart(): Promise<void> {
    const { faults } = this.service
    // Until it is closed, faults may strike.
    await this.service.close()
    this.#strikes += strikesOf(faults)
    await this.start(faults.armed)
  }

  arm(fault: PlannedFault): void {
    this.service.faults.add(fault)
    const form = formOf(fault)
    this.#armed.set(form, (this.#armed.get(form) ?? 0) + fault.times)
  }

  /** How often the faults of each form that was armed have struck so far, restarts or not. */
  get struck(): Readonly<Record<string, number>> {
    const struck = new Map(this.#armed)
    for (const fault of this.service.faults.armed) {
      const form = formOf(fault)
      struck.set(form, (struck.get(form) ?? 0) - (fault.times ?? Infinity))
    }
    // What is no longer armed and has not struck would pass for struck.
    if (sum(struck.values()) !== this.#strikes + strikesOf(this.service.faults))
      throw new Error('faults have gone without a strike')
    return Object.fromEntries(struck)
  }

  /** Whether every run has ended, and every fault that was armed has struck. */
  get isThrough(): boolean {
    return (
      this.service.records().runs.every(hasEnded) && Object.values(this.struck).every((times) => times > 0)
    )
  }

  /** Whether a fault is armed that any request would meet, those of the soak itself too. */
  get isBarred(): boolean {
    const { armed } = this.service.faults
    return armed.some((fault) => isOnTheWay(fault) && fault.path === undefined)
  }

  /**
   * So many events were handled. More may be made, but not many more than `next`, at which something is to happen while
   * there is something to lose; all of them once nothing more is to happen.
   */
  handled(count: number, next: number | undefined): void {
    this.#allowed = next === undefined ? Infinity : Math.min(count, next) + this.#settings.ahead
    for (const go of this.#waiting.splice(0)) go()
  }

  /** Adds a document that the monitor will report. */
  async note(): Promise<void> {
    const number = ++this.#notes
    const text = `# Note ${number}\n\nThe tide gauge ${number} measured a spring tide — höher als je zuvor.\n`
    await writeFile(join(this.#settings.folder, 'docs', `note-${number}.md`), text)
  }

  readonly #processor: Processor = {
    run: async ({ input }, signal) => {
      while (this.#made >= this.#allowed && !signal.aborted) {
        await new Promise<void>((resolve) => {
          this.#waiting.push(resolve)
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
      }
      signal.throwIfAborted()
      this.#made += 1
      this.#settings.onMade?.(input.input)
      // Several bytes a character, for cuts in the middle of one.
      const content = `über ${JSON.stringify(input.input)}: ${'grün – '.repeat(20)}`
      return { output: { type: 'text', content, basis: [] } }
    },
  }
}

/** Whether the fault strikes before the request has taken effect. */
function isOnTheWay(fault: Fault): fault is Extract<Fault, { readonly kind: 'status' | 'wrong-type' }> {
  return fault.kind === 'status' || fault.kind === 'wrong-type'
}

function strikesOf({ struck }: Faults): number {
  return sum(Object.values(struck))
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((total, number) => total + number, 0)
}
