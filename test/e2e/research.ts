import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'rivulet'
import type { ClientOptions, Diagnostic, ResearchClient } from 'rivulet'
import { createResearchService, ManualClock } from 'rivulet/service'
import type { Processor, ResearchService, ResearchServiceOptions } from 'rivulet/service'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs'
import { onTestFinished } from 'vitest'
import { folderOf } from '../service/corpus/folder.ts'
import type { Files } from '../service/corpus/folder.ts'

/** A client and a service over a real socket, with a manual clock. Closed when the test ends. */
export interface Research {
  readonly service: ResearchService
  readonly client: ResearchClient
  readonly clock: ManualClock
  readonly docs: string
  readonly diagnostics: readonly Diagnostic[]
  /** Creates a group with one run for each text. */
  group(...inputs: string[]): Promise<string>
}

/** Answers immediately with the input. */
const echo: Processor = {
  run: async ({ input }) => ({
    output: { type: 'text', content: `about ${JSON.stringify(input.input)}`, basis: [] },
  }),
}

/** A processor whose runs the test ends. */
export class HeldRuns implements Processor {
  #waiting: (() => void)[] = []
  #open = false

  /** Ends every run, also future ones. */
  release(): void {
    this.#open = true
    for (const end of this.#waiting.splice(0)) end()
  }

  readonly run: Processor['run'] = async (task, signal) => {
    if (!this.#open) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return echo.run(task, signal)
  }
}

/** Without a new event for this time, in ms, a stream that was opened in the middle completes. */
export const QUIET_SOON: ClientOptions = { patience: 20 }

/** Options of the service, its documents, and options of the client. */
type ResearchSettings = Partial<ResearchServiceOptions> & {
  readonly files?: Files
  readonly client?: ClientOptions
}

/** Starts the client and the service. */
export async function research(options: ResearchSettings = {}): Promise<Research> {
  const clock = new ManualClock(Date.now())
  return { ...(await connected({ clock, ...options })), clock }
}

/** A client and a service without a manual clock. */
export type ScaledResearch = Omit<Research, 'clock'>

/** A client and a service as of {@link research}, whose clock runs by itself, `speed` times as fast as real time. */
export function scaledResearch(speed: number, options: ResearchSettings = {}): Promise<ScaledResearch> {
  return connected({ speed, ...options })
}

async function connected(options: ResearchSettings): Promise<ScaledResearch> {
  const { files = {}, client: settings, ...own } = options
  const docs = await folderOf(files)
  const service = await createResearchService({
    ...(!('docs' in own) && { docs }),
    processor: echo,
    quotas: false,
    ...own,
  })
  onTestFinished(() => service.close())
  const client = createClient({
    baseUrl: await service.listen(),
    apiKey: service.apiKey,
    initialDelay: 0,
    quotas: false,
    ...settings,
  })
  const diagnostics: Diagnostic[] = []
  client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))
  return {
    service,
    client,
    docs,
    diagnostics,
    async group(...inputs) {
      const { taskgroup_id } = await firstValueFrom(client.taskGroups.create())
      if (inputs.length > 0) {
        const runs = inputs.map((input) => ({ input, processor: 'base' }))
        await lastValueFrom(client.taskGroups.addRuns(taskgroup_id, { inputs: runs }))
      }
      return taskgroup_id
    },
  }
}

/** A webhook receiver on a real server, closed when the test ends. */
export async function receiving({
  service,
  clock,
}: Research): Promise<{ url: string; receiver: WebhookReceiver }> {
  const receiver = createWebhookReceiver({ secrets: service.webhookSecret, clock: () => clock.now() })
  const server = createServer(nodeListener(receiver))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    receiver.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, receiver }
}

/** All events of a finite stream. */
export function all<T>(stream: Parameters<typeof lastValueFrom<T>>[0]): Promise<T[]> {
  return lastValueFrom(stream.pipe(toArray()))
}
