import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type {
  AddRunsResponse,
  ErrorResponse,
  RunInput,
  TaskGroup,
  TaskGroupStatus,
  TaskOutput,
  TaskRun,
} from '../../src/protocol/index.ts'
import {
  createResearchService,
  ManualClock,
  type Processor,
  type ResearchService,
  type ResearchServiceOptions,
  type ProcessorResult,
  type ProcessorTask,
} from '../../src/service/index.ts'
import type { ServiceProblem } from '../../src/protocol/problem.ts'

// The first folder is the site of a document.
const DOCUMENTS = {
  'cells.example.com/solid-state.md': `# Solid state batteries

Solid state batteries replace the liquid electrolyte by a solid one. A ceramic electrolyte does not burn, and it stops
dendrites of lithium from reaching the other electrode. Makers expect an energy density twice that of lithium ion cells.
`,
  'cells.example.com/sodium.md': `# Sodium ion batteries

Sodium ion batteries store less energy than lithium ones, but sodium is cheap and can be found everywhere. They keep
working in the cold, where lithium cells lose much of their charge.
`,
  'sea.example.edu/tides.md': `# Tides

Tides rise and fall as the moon and the sun pull at the sea. Spring tides come with the full moon and the new moon.
`,
}

/** A folder of three documents, removed when the test ends. */
export async function documentFolder(): Promise<string> {
  const folder = await temporaryFolder()
  for (const [name, text] of Object.entries(DOCUMENTS)) {
    const file = join(folder, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  return folder
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-service-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A listening service with a manual clock, closed when the test ends. */
export async function running(options: Partial<ResearchServiceOptions> = {}): Promise<Caller> {
  const docs = options.docs ?? (await documentFolder())
  const time = options.speed === undefined ? { clock: new ManualClock() } : {}
  const service = await createResearchService({ ...time, processor: answering, ...options, docs })
  onTestFinished(() => service.close())
  return new Caller(service, await service.listen())
}

/** A response, with the type of the body given by the test. */
export interface Answer<Body> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
}

/** Whether a body is sent as it is. */
function isEncoded(body: unknown): body is string | Buffer<ArrayBuffer> {
  return typeof body === 'string' || body instanceof Buffer
}

/** Plain HTTP to one service. */
export class Caller {
  readonly service: ResearchService
  readonly url: string

  constructor(service: ResearchService, url: string) {
    this.service = service
    this.url = url
  }

  readonly get = <Body = ErrorResponse>(path: string, headers: Record<string, string> = {}) => {
    return this.send<Body>(path, { headers: { 'x-api-key': this.service.apiKey, ...headers } })
  }

  readonly post = <Body = ErrorResponse>(
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) => {
    return this.send<Body>(path, {
      method: 'POST',
      headers: { 'x-api-key': this.service.apiKey, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: isEncoded(body) ? body : JSON.stringify(body) }),
    })
  }

  readonly send = async <Body = ErrorResponse>(path: string, init?: RequestInit): Promise<Answer<Body>> => {
    const response = await fetch(this.url + path, init)
    const text = await response.text()
    const body = text === '' ? undefined : JSON.parse(text)
    return { status: response.status, headers: response.headers, body }
  }

  /** Creates a group and returns its id. */
  readonly group = async (): Promise<string> => {
    const { body } = await this.post<TaskGroup>('/v1/tasks/groups', {})
    return body.taskgroup_id
  }

  /** Adds one run for each input. */
  readonly add = async (group: string, ...inputs: string[]): Promise<AddRunsResponse> => {
    const body = { inputs: inputs.map((input) => ({ input })) }
    const answer = await this.post<AddRunsResponse>(`/v1/tasks/groups/${group}/runs`, body)
    return answer.body
  }

  readonly stream = async (path: string, headers: Record<string, string> = {}): Promise<EventReader> => {
    const response = await fetch(this.url + path, {
      headers: { 'x-api-key': this.service.apiKey, ...headers },
    })
    const reader = new EventReader(response)
    onTestFinished(() => reader.close())
    return reader
  }

  /** All events of a stream that ends. */
  readonly events = async (path: string): Promise<ServerEvent[]> => {
    const reader = await this.stream(path)
    return await reader.rest()
  }
}

export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: {
    readonly type: string
    readonly event_id?: string
    readonly run?: TaskRun
    readonly input?: RunInput
    readonly output?: TaskOutput
    readonly status?: TaskGroupStatus
    readonly error?: ServiceProblem
  }
}

/** Reads a stream of server-sent events, one by one. */
export class EventReader {
  readonly status: number
  readonly headers: Headers
  /** All received text, including comments and retry fields. */
  text = ''
  #offset = 0
  readonly #body
  readonly #decoder = new TextDecoder()

  constructor(response: Response) {
    this.status = response.status
    this.headers = response.headers
    if (response.body === null) throw new Error('the answer has no body')
    this.#body = response.body.getReader()
  }

  /** The next event, undefined at a clean end; rejects when the connection breaks. */
  async next(): Promise<ServerEvent | undefined> {
    for (;;) {
      const end = this.text.indexOf('\n\n', this.#offset)
      if (end >= 0) {
        const block = this.text.slice(this.#offset, end)
        this.#offset = end + 2
        const event = parseEvent(block)
        if (event !== undefined) return event
        continue
      }
      const { done, value } = await this.#body.read()
      if (done) return undefined
      this.text += this.#decoder.decode(value, { stream: true })
    }
  }

  async rest(): Promise<ServerEvent[]> {
    const events: ServerEvent[] = []
    for (let event = await this.next(); event !== undefined; event = await this.next()) events.push(event)
    return events
  }

  /** The text that arrives before the connection breaks. */
  async untilBroken(): Promise<ServerEvent[]> {
    const events: ServerEvent[] = []
    try {
      for (let event = await this.next(); event !== undefined; event = await this.next()) events.push(event)
    } catch {
      return events
    }
    throw new Error('the stream ended cleanly')
  }

  async close(): Promise<void> {
    await this.#body.cancel().catch(() => undefined)
  }
}

function parseEvent(block: string): ServerEvent | undefined {
  const fields = Object.fromEntries(
    block
      .split('\n')
      .filter((line) => !line.startsWith(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
  if (fields['data'] === undefined) return undefined
  return { id: fields['id'] ?? '', event: fields['event'] ?? '', data: JSON.parse(fields['data']) }
}

/** The output of {@link answering}. */
export function answerTo(input: unknown): ProcessorResult {
  const content = `Answer to ${typeof input === 'string' ? input : JSON.stringify(input)}`
  return { output: { type: 'text', content, basis: [{ field: 'output', reasoning: 'It was asked' }] } }
}

/** Completes every run at once, except for those whose input requests a failure. */
const answering: Processor = {
  async run({ input }) {
    if (input.input === 'fail') throw new Error('It was asked to fail')
    return answerTo(input.input)
  },
}

/** A running run, which the test ends. */
export interface HeldRun {
  readonly task: ProcessorTask
  readonly signal: AbortSignal
  complete(): void
  fail(message: string): void
}

/** A processor whose runs are ended by the test. */
export class HeldProcessor implements Processor {
  readonly #started: HeldRun[] = []
  readonly #waiting: ((run: HeldRun) => void)[] = []

  run(task: ProcessorTask, signal: AbortSignal): Promise<ProcessorResult> {
    return new Promise((resolve, reject) => {
      const run: HeldRun = {
        task,
        signal,
        complete: () => resolve(answerTo(task.input.input)),
        fail: (message) => reject(new Error(message)),
      }
      const waiting = this.#waiting.shift()
      if (waiting === undefined) this.#started.push(run)
      else waiting(run)
    })
  }

  /** Started runs that the test has not taken yet. */
  get waiting(): number {
    return this.#started.length
  }

  /** The next run that is started. */
  next(): Promise<HeldRun> {
    const run = this.#started.shift()
    if (run !== undefined) return Promise.resolve(run)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}
