import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type {
  FindAllCandidate,
  FindAllRequest,
  FindAllResult,
  FindAllRun,
  FindAllSchema,
} from '../../../src/protocol/find-all.ts'
import type { ErrorResponse } from '../../../src/protocol/index.ts'
import type { ResearchServiceOptions } from '../../../src/service/index.ts'
import { type Answer, type Caller, type EventReader, running, temporaryFolder } from '../running.ts'

/** Documents about packages. Those of `streams` and `queue` are for TypeScript. */
export const PACKAGES = {
  'streams/README.md': `# streams

A library of streams for TypeScript. It runs in Node.js and in browsers. It has no dependencies.
`,
  'streams/CHANGELOG.md': '# Changes\n\nVersion 2 of the library is written in TypeScript.\n',
  '@scope/queue/README.md': '# @scope/queue\n\nA queue library for TypeScript with 120 contributors.\n',
  '@scope/queue/docs/guide.md': '# Guide\n\nThe queue library keeps the order of its jobs.\n',
  'parser/README.md': '# parser\n\nA parser library, written in Rust. It does not support TypeScript.\n',
  'guides/testing.md': '# Testing guide\n\nHow to test a library with a runner.\n',
} satisfies Readonly<Record<string, string>>

/** A folder of packages and a guide, removed when the test ends. */
export async function packageFolder(files: Readonly<Record<string, string>> = PACKAGES): Promise<string> {
  const folder = await temporaryFolder()
  for (const [name, text] of Object.entries(files)) {
    const file = join(folder, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  return folder
}

/** This many packages, of which those with an even number are written in TypeScript. */
export function manyPackages(count: number): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => {
      const language = index % 2 === 0 ? 'TypeScript' : 'Rust'
      const text = `# package-${index}\n\nLibrary number ${index} is written in ${language}.\n`
      return [`package-${index}/README.md`, text]
    }),
  )
}

/** Finds libraries for TypeScript. */
export const LIBRARIES: FindAllRequest = {
  objective: 'Find all libraries for TypeScript',
  entity_type: 'libraries',
  match_conditions: [{ name: 'typescript', description: 'The library is for TypeScript' }],
  generator: 'core',
  match_limit: 5,
}

/** The body of a request for the language of each candidate. */
export const ENRICHMENT = {
  processor: 'base',
  output_schema: {
    type: 'json',
    json_schema: { type: 'object', properties: { language: { type: 'string' } } },
  },
}

/** An event of a run's stream. */
export interface FindAllServerEvent {
  readonly id: string
  readonly event: string
  readonly data: {
    readonly type: string
    readonly event_id: string
    readonly timestamp: string
    readonly data: Partial<FindAllRun & FindAllCandidate & FindAllSchema>
  }
}

const BETA = { 'service-beta': 'findall-2025-09-15' }

/** A service over packages, with the calls of FindAll. */
export async function findAllService(options: Partial<ResearchServiceOptions> = {}): Promise<FindAllCaller> {
  const docs = options.docs ?? [{ folder: await packageFolder(), site: 'https://docs.example' }]
  return new FindAllCaller(await running({ ...options, docs }))
}

/** Plain HTTP to FindAll. */
export class FindAllCaller {
  readonly caller: Caller

  constructor(caller: Caller) {
    this.caller = caller
  }

  post<Body = ErrorResponse>(path: string, body?: unknown): Promise<Answer<Body>> {
    return this.caller.post<Body>(`/v1beta/findall${path}`, body, BETA)
  }

  get<Body = ErrorResponse>(path: string): Promise<Answer<Body>> {
    return this.caller.get<Body>(`/v1beta/findall${path}`, BETA)
  }

  /** Creates a run and returns its id. */
  async create(more: Partial<FindAllRequest> = {}): Promise<string> {
    const { body } = await this.post<FindAllRun>('/runs', { ...LIBRARIES, ...more })
    return body.findall_id
  }

  /** All events of a run until it is over. */
  async events(id: string, query = ''): Promise<FindAllServerEvent[]> {
    const stream = await this.stream(id, query)
    return asFindAll(await stream.rest())
  }

  stream(id: string, query = ''): Promise<EventReader> {
    return this.caller.stream(`/v1beta/findall/runs/${id}/events${query}`, BETA)
  }

  async result(id: string): Promise<FindAllResult> {
    const { body } = await this.get<FindAllResult>(`/runs/${id}/result`)
    return body
  }
}

/** The events of a stream as those of FindAll. */
export function asFindAll(events: readonly unknown[]): FindAllServerEvent[] {
  return events as FindAllServerEvent[]
}

/** The type of each event, and the status or the name that it has. */
export function brief(events: readonly FindAllServerEvent[]): string[] {
  return events.map(({ data: { type, data } }) => {
    const kind = type.replace('findall.', '').replace('candidate.', '')
    const { status, name } = data
    return [kind, name ?? status?.status].filter((part) => part !== undefined).join(' ')
  })
}
