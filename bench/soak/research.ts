import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createResearchService } from 'rivulet/service'
import type { Processor, ResearchService } from 'rivulet/service'

/** Everything about the service that outlives its restarts. */
export interface ResearchSettings {
  readonly folder: string
  readonly apiKey: string
  readonly webhookSecret: string
  /** Runs that may end beyond those that were handled, so that there is always something going on. */
  readonly ahead: number
}

/** The service of a soak: it can be restarted, and makes events as fast as they are handled. */
export class Research {
  readonly #settings: ResearchSettings
  #service: ResearchService | undefined
  #port = 0
  #made = 0
  #allowed: number
  #waiting: (() => void)[] = []
  #notes = 0

  constructor(settings: ResearchSettings) {
    this.#settings = settings
    this.#allowed = settings.ahead
  }

  get service(): ResearchService {
    if (this.#service === undefined) throw new Error('the service is not started')
    return this.#service
  }

  get url(): string {
    return this.service.url ?? ''
  }

  /** Starts it, at the same address as before. */
  async start(): Promise<void> {
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
      concurrency: 16,
      // Webhook retries take seconds of the clock.
      speed: 100,
    })
    await this.#service.listen({ port: this.#port })
    this.#port = Number(new URL(this.url).port)
  }

  /** Stops it and starts it again over the same database, with the faults forgotten. */
  async restart(): Promise<void> {
    await this.service.close()
    await this.start()
  }

  /** So many events were handled: more may be made, but not many more than `until`. */
  handled(count: number, until: number): void {
    this.#allowed = Math.min(count, until) + this.#settings.ahead
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
      // Several bytes a character, for cuts in the middle of one.
      const content = `über ${JSON.stringify(input.input)}: ${'grün – '.repeat(20)}`
      return { output: { type: 'text', content, basis: [] } }
    },
  }
}
