import { map } from 'rxjs'
import type { Observable } from 'rxjs'
import { AnswerInterruptedError, UncertainRequestError } from 'rivulet'
import type { FindAllEvent, FindAllRequest, ResearchClient, RunEvent } from 'rivulet'
import type { Fault, FaultKind, Processor } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { all, research } from './research.ts'
import type { Research } from './research.ts'

/** The client's idle timeout in ms. A spurious timeout costs only a connection. */
const SILENCE = 50

const MESSAGES = ['plan 1', 'Möwe 2', '四', 'search 4', 'search 5']
const ANSWER = 'Die Möwe fliegt. '.repeat(20)

/** Reports messages, answers, and counts its answers. */
class Reporting implements Processor {
  answers = 0

  readonly run: Processor['run'] = ({ report }) => {
    this.answers += 1
    for (const [n, text] of MESSAGES.entries())
      report({ message: { kind: 'search', text }, meter: (n + 1) * 20 })
    return Promise.resolve({ output: { type: 'text', content: ANSWER, basis: [] } })
  }
}

const TRACE = ['The run has started', ...MESSAGES, 'The run has completed', 'completed']

const FIND_ALL: FindAllRequest = {
  objective: 'Find all libraries written in TypeScript',
  entity_type: 'libraries',
  match_conditions: [{ name: 'typescript', description: 'The library is written in TypeScript' }],
  generator: 'core',
  match_limit: 20,
}
const files = Object.fromEntries(
  Array.from({ length: 4 }, (_, n) => [
    `package-${n}/README.md`,
    `# package-${n}\n\nLibrary ${n} is written in ${n % 2 === 0 ? 'TypeScript' : 'Rust'}.\n`,
  ]),
)
const CANDIDATES = [0, 2, 1, 3].flatMap((n) => [
  `generated package-${n}`,
  `${n % 2 === 0 ? 'matched' : 'unmatched'} package-${n}`,
])

async function started() {
  const processor = new Reporting()
  const both = await research({ files, processor, client: { timeouts: { silence: SILENCE } } })
  return { ...both, processor }
}

/** A run's messages and its end. Progress is left out: a later connection has only the latest. */
const briefOfRun = (events: readonly RunEvent[]) =>
  events.flatMap((event) => {
    if (event.type === 'task_run.progress_msg') return [event.data.message]
    if (event.type === 'task_run.state') return event.data.run.is_active ? [] : [event.data.run.status]
    return event.type === 'task_run.progress_stats' ? [] : [event.type]
  })

/** The candidates' changes, and whether the last event is the end. */
const briefOfFindAll = (events: readonly FindAllEvent[]) =>
  events.flatMap((event) => {
    if (!event.type.startsWith('findall.candidate.')) return []
    const { data } = event.data as { readonly data: { readonly name: string } }
    return [`${event.type.slice('findall.candidate.'.length)} ${data.name}`]
  })

/** A stream of a created resource: where its faults strike, and what must come of it. */
interface FollowedStream {
  readonly path: string
  readonly expected: readonly string[]
  /** Creates the resource where the call does not, arms the faults, and reads the stream. */
  read(client: ResearchClient, arm: () => void): Promise<readonly string[]>
}

const FOLLOWED: Readonly<Record<string, FollowedStream>> = {
  'tasks.events': {
    path: '/v1/tasks/runs/',
    expected: TRACE,
    async read(client, arm) {
      const { run_id } = await client.tasks.create({ input: 'x', processor: 'base', enable_events: true })
      await client.tasks.result(run_id)
      arm()
      return briefOfRun(await all<RunEvent>(client.tasks.events(run_id)))
    },
  },
  'tasks.run': {
    path: '/v1/tasks/runs/',
    expected: TRACE,
    async read(client, arm) {
      arm()
      return briefOfRun(await all<RunEvent>(client.tasks.run('x')))
    },
  },
  'the result of tasks.run': {
    path: '/v1/tasks/runs/',
    expected: [ANSWER],
    async read(client, arm) {
      arm()
      const { output } = await client.tasks.run('x')
      return [String(output?.content)]
    },
  },
  'findAll.events': {
    path: '/v1beta/findall/runs/',
    expected: CANDIDATES,
    async read(client, arm) {
      const { findall_id } = await client.findAll.create(FIND_ALL)
      await all(client.findAll.events(findall_id))
      arm()
      return briefOfFindAll(await all<FindAllEvent>(client.findAll.events(findall_id)))
    },
  },
  'findAll.run': {
    path: '/v1beta/findall/runs/',
    expected: CANDIDATES,
    async read(client, arm) {
      arm()
      return briefOfFindAll(await all<FindAllEvent>(client.findAll.run(FIND_ALL)))
    },
  },
  'the result of findAll.run': {
    path: '/v1beta/findall/runs/',
    expected: ['matched package-0', 'matched package-2', 'unmatched package-1', 'unmatched package-3'],
    async read(client, arm) {
      arm()
      const { candidates } = await client.findAll.run(FIND_ALL)
      return candidates.map(({ match_status, name }) => `${match_status} ${name}`).toSorted()
    },
  },
}

const SURVIVED: readonly (readonly Fault[])[] = [
  [{ kind: 'cut', times: 3 }],
  [{ kind: 'cut', after: 1, times: 3 }],
  [{ kind: 'cut', at: 'line', after: 2, times: 3 }],
  [{ kind: 'cut', at: 'character', after: 1, times: 3 }],
  [{ kind: 'cut', at: 'chunk', after: 3, times: 3 }],
  [{ kind: 'stall', times: 1 }],
  [{ kind: 'stall', after: 1, times: 1 }],
  [{ kind: 'stall', after: 3, times: 1 }],
  [{ kind: 'close', times: 1 }],
  [{ kind: 'close', after: 1, times: 1 }],
  [{ kind: 'close', after: 3, times: 1 }],
  [{ kind: 'slow', bytes: 40, interval: 0, times: 4 }],
  [{ kind: 'malformed', times: 2 }],
  [{ kind: 'malformed', after: 3, times: 3 }],
  [{ kind: 'wrong-type', times: 3 }],
  [{ kind: 'gzip' }],
  [{ kind: 'gzip' }, { kind: 'cut', after: 2, times: 2 }],
  ...[408, 429, 500, 502, 503, 504].map((status): readonly Fault[] => [
    { kind: 'status', status, retryAfter: 0, times: 3 },
  ]),
  [
    { kind: 'cut', at: 'chunk', after: 1, times: 1 },
    { kind: 'slow', bytes: 60, interval: 0, times: 2 },
    { kind: 'close', after: 2, times: 1 },
    { kind: 'malformed', after: 1, times: 1 },
    { kind: 'wrong-type', times: 1 },
  ],
]

/** Arms faults of the requests to a path. */
function armAt({ service }: Research, faults: readonly Fault[], path: string): void {
  for (const fault of faults) service.faults.add({ ...fault, path } as Fault)
}

const kindsOf = (faults: readonly Fault[]): FaultKind[] =>
  [...new Set(faults.map(({ kind }) => kind))].toSorted()

describe.each(Object.entries(FOLLOWED))('%s', (_, { path, expected, read }) => {
  it.each(SURVIVED.map((faults) => [faults]))(
    'has each message once and in order under %j',
    async (faults) => {
      const both = await started()

      const got = await read(both.client, () => armAt(both, faults, path))

      expect(got).toEqual(expected)
      expect(Object.keys(both.service.faults.struck).toSorted()).toEqual(kindsOf(faults))
      expect(both.processor.answers).toBeLessThanOrEqual(1)
    },
  )
})

/** A streamed answer: the text after each event until the end or the error. */
interface Answered {
  readonly texts: readonly string[]
  readonly error: unknown
}

/** The text of each event. */
const ANSWERED: Readonly<
  Record<'chat.stream' | 'responses.stream', (client: ResearchClient) => Observable<string>>
> = {
  'chat.stream': (client) =>
    client.chat
      .stream({ model: 'base', messages: [{ role: 'user', content: 'q' }] })
      .pipe(map(({ text }) => text)),
  'responses.stream': (client) =>
    client.responses.stream({ model: 'base', input: 'q' }).pipe(map(({ text }) => text)),
}

function answered(client: ResearchClient, stream: keyof typeof ANSWERED): Promise<Answered> {
  const texts: string[] = []
  return new Promise((resolve) => {
    ANSWERED[stream](client).subscribe({
      next: (text) => texts.push(text),
      complete: () => resolve({ texts, error: undefined }),
      error: (error: unknown) => resolve({ texts, error }),
    })
  })
}

describe.each(['chat.stream', 'responses.stream'] as const)('%s', (stream) => {
  it.each<readonly [readonly Fault[]]>([
    [[{ kind: 'slow', bytes: 60, interval: 0, times: 5 }]],
    [[{ kind: 'gzip' }]],
    [[{ kind: 'gzip' }, { kind: 'slow', bytes: 60, interval: 0, times: 2 }]],
    [[{ kind: 'status', status: 429, retryAfter: 0, times: 2 }]],
    [[{ kind: 'status', status: 503, retryAfter: 0, retryAfterForm: 'date', times: 2 }]],
  ])('has the whole answer, made once, under %j', async (faults) => {
    const both = await started()
    armAt(both, faults, '/v1')

    const { texts, error } = await answered(both.client, stream)

    expect(error).toBeUndefined()
    expect(texts.at(-1)).toBe(ANSWER)
    expect(both.processor.answers).toBe(1)
    expect(Object.keys(both.service.faults.struck).toSorted()).toEqual(kindsOf(faults))
  })

  it.each<Fault>([
    { kind: 'cut' },
    { kind: 'cut', after: 6 },
    { kind: 'cut', at: 'line', after: 6 },
    { kind: 'cut', at: 'character', after: 3 },
    { kind: 'cut', at: 'chunk', after: 6 },
    { kind: 'close' },
    { kind: 'close', after: 6 },
    { kind: 'malformed', after: 6 },
  ])('errors with what came of the text, and asks once, under %j', async (fault) => {
    const both = await started()
    armAt(both, [fault], '/v1')

    const { texts, error } = await answered(both.client, stream)

    expect(error).toBeInstanceOf(AnswerInterruptedError)
    expect(error).toMatchObject({ retryable: false, text: texts.at(-1) ?? '' })
    expect(texts.every((text) => ANSWER.startsWith(text) && text !== ANSWER)).toBe(true)
    expect(both.processor.answers).toBeLessThanOrEqual(1)
    expect(Object.keys(both.service.faults.struck)).toEqual([fault.kind])
  })

  it.each<Fault>([
    ...[408, 500, 502, 504].map((status): Fault => ({ kind: 'status', status })),
    { kind: 'wrong-type' },
  ])('errors without a second request when the service may answer already: %j', async (fault) => {
    const both = await started()
    armAt(both, [fault], '/v1')

    const { texts, error } = await answered(both.client, stream)

    expect(error).toBeInstanceOf(UncertainRequestError)
    expect(texts).toEqual([])
    expect(both.service.faults.struck[fault.kind]).toBe(1)
  })

  it.each([
    [401, 'AuthenticationError'],
    [402, 'PaymentRequiredError'],
    [404, 'NotFoundError'],
    [409, 'ConflictError'],
    [422, 'ValidationError'],
  ])('errors once with the type of a %i', async (status, name) => {
    const both = await started()
    armAt(both, [{ kind: 'status', status }], '/v1')

    const { error } = await answered(both.client, stream)

    expect(error).toMatchObject({ name, status, retryable: false })
    expect(both.service.faults.struck.status).toBe(1)
  })
})

describe('a creating request', () => {
  const creations = {
    'tasks.run': { path: '/v1/tasks/runs', error: 'UncertainRunError' },
    'findAll.run': { path: '/v1beta/findall/runs', error: 'FindAllInterruptedError' },
  } as const
  const creators = ['tasks.run', 'findAll.run'] as const

  const create = (client: ResearchClient, creator: (typeof creators)[number]): Promise<unknown> =>
    creator === 'tasks.run'
      ? Promise.resolve(client.tasks.run('x'))
      : Promise.resolve(client.findAll.run(FIND_ALL))

  it.each(
    creators.flatMap((creator) =>
      ([{ kind: 'wrong-type' }, { kind: 'truncated' }, { kind: 'malformed' }] as const)
        .map((fault): Fault => fault)
        .concat([408, 500, 502, 504].map((status): Fault => ({ kind: 'status', status })))
        .map((fault) => [creator, fault] as const),
    ),
  )('of %s is not sent again when the service may have acted on it: %j', async (creator, fault) => {
    const both = await started()
    const { path, error } = creations[creator]
    armAt(both, [fault], path)

    await expect(create(both.client, creator)).rejects.toMatchObject({ name: error, retryable: false })

    expect(both.service.faults.struck).toEqual({ [fault.kind]: 1 })
    expect(both.service.records().runs.length).toBeLessThanOrEqual(1)
  })

  it.each(creators.flatMap((creator) => [429, 503].map((status) => [creator, status] as const)))(
    'of %s is sent again after a %i, and creates one',
    async (creator, status) => {
      const both = await started()
      armAt(both, [{ kind: 'status', status, retryAfter: 0, times: 2 }], creations[creator].path)

      await create(both.client, creator)

      expect(both.service.faults.struck.status).toBe(2)
      expect(both.service.records().runs).toHaveLength(creator === 'tasks.run' ? 1 : 0)
    },
  )
})
