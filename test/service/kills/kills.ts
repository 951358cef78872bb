import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { randomOf } from '../../../bench/random.ts'
import { programFiles } from '../../support/programs.ts'
import { type Findings, verify } from './verify.ts'
import { Api, createEachKind, createOne, nothingAcknowledged, Unreachable } from './workload.ts'

/** What is killed, and how often. */
export interface KillPlan {
  /** An empty folder. */
  readonly folder: string
  readonly kills: number
  readonly seed: number
  readonly onStep?: (text: string) => void
}

/** What became of everything that was acknowledged. */
export interface KillResult extends Findings {
  readonly kills: number
  /** How many of the kills came at a commit of the database; the others came at any moment. */
  readonly kills_at_commits: number
  readonly seconds: number
}

const fileOf = await programFiles()

/** The clock's speed: an hour of a monitor is a second. */
const SPEED = 3_600
const KEY = 'key'
/** Number of requests that are sent at once. */
const WORKERS = 4
/** About how many things are created between two kills, at most. */
const MAX_CREATED = 16
/** The greatest number of the commit at which the service dies: of all commits, and of those that write to one table. */
const MAX_COMMIT = 60
const MAX_TABLE_COMMIT = 4
/** The kills at a commit take one of these after another: it writes to this table, or '' to any. */
const TABLES = [
  'monitor_snapshots',
  'interactions',
  'webhooks',
  'memories',
  '',
  'task_runs',
  'monitor_executions',
  'find_all_log',
] as const

/** Kills a service with all areas active, starts it again each time, and compares what it has with what it acknowledged. */
export async function killService(plan: KillPlan): Promise<KillResult> {
  const began = performance.now()
  const { folder, kills, seed, onStep = () => {} } = plan
  // Requests draw in the order of their answers. The kills draw from a generator of their own, so that a seed repeats them.
  const [random, draw] = [randomOf(seed), randomOf(seed + 1)]
  const docs = join(folder, 'docs')
  await writePackages(docs)
  const receiver = await startReceiver()
  const done = nothingAcknowledged()
  let atCommits = 0
  let service: Service | undefined
  try {
    for (let kill = 0; kill < kills; kill++) {
      await writeLicense(docs, licenseAt(kill))
      // The first process creates one of each kind.
      const isAtCommit = kill > 0 && draw() < 0.5
      const table = TABLES[atCommits % TABLES.length] ?? ''
      const maxCommit = table === '' ? MAX_COMMIT : MAX_TABLE_COMMIT
      const dieAt = isAtCommit ? 1 + Math.floor(draw() * maxCommit) : 0
      service = start({
        docs,
        data: join(folder, 'service.db'),
        dieAt,
        moment: draw() < 0.5 ? 'before' : 'after',
        table,
      })
      // The commit may never come, if its table is written to no more.
      let left = isAtCommit ? MAX_COMMIT : 1 + Math.floor(draw() * MAX_CREATED)
      const url = await service.url
      if (url !== undefined) {
        const api = new Api(url, KEY)
        const { kill: killNow } = service
        const work = async (): Promise<void> => {
          try {
            for (;;) {
              await createOne({ api, done, webhookUrl: receiver.url, random })
              left -= 1
              // The other workers have requests on the way.
              if (left <= 0) killNow()
            }
          } catch (error) {
            if (!(error instanceof Unreachable)) throw error
          }
        }
        if (kill === 0) await createEachKind({ api, done, webhookUrl: receiver.url, random })
        await Promise.all(Array.from({ length: WORKERS }, work))
      }
      const signal = await service.ended
      if (signal !== 'SIGKILL') throw new Error('the service ended by itself')
      if (isAtCommit) atCommits++
      onStep(
        `kill ${kill + 1} of ${kills}${isAtCommit ? ` at commit ${dieAt} ${table}` : ''}, ${done.runs.length} runs`,
      )
    }
    service = start({ docs, data: join(folder, 'service.db'), dieAt: 0, moment: 'before', table: '' })
    const url = await service.url
    if (url === undefined) throw new Error('the service does not start')
    const findings = await verify({
      api: new Api(url, KEY),
      done,
      deliveries: receiver.deliveries,
      license: licenseAt(kills - 1),
    })
    return {
      kills,
      kills_at_commits: atCommits,
      ...findings,
      seconds: Math.round((performance.now() - began) / 1_000),
    }
  } finally {
    service?.kill()
    await service?.ended
    await receiver.close()
  }
}

interface Service {
  /** Undefined if the process dies before it listens. */
  readonly url: Promise<string | undefined>
  /** The signal that ended the process. */
  readonly ended: Promise<unknown>
  kill(): void
}

interface Start {
  readonly docs: string
  readonly data: string
  /** The number of the commit at which it dies, among those that write to the table; 0 for none. */
  readonly dieAt: number
  readonly moment: 'before' | 'after'
  readonly table: string
}

function start(options: Start): Service {
  const { docs, data, dieAt, moment, table } = options
  const child = fork(
    fileOf('test/service/kills/killed-process.ts'),
    [docs, data, KEY, String(SPEED), String(dieAt), moment, table],
    { execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'] },
  )
  const ended = once(child, 'exit').then(([, signal]: unknown[]) => signal)
  const listening = once(child, 'message').then(([url]: unknown[]) => String(url))
  return {
    url: Promise.race([listening, ended.then(() => undefined)]),
    ended,
    kill: () => void child.kill('SIGKILL'),
  }
}

/** Stores every webhook. Refuses each third one at the first attempt, so that some are owed for longer. */
async function startReceiver() {
  const deliveries = new Map<string, { bodies: Set<string>; body: unknown }>()
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => '')
    // The service was killed while it sent this.
    if (body === '' || !request.complete) return
    const id = String(request.headers['webhook-id'])
    const known = deliveries.get(id)
    if (known === undefined) deliveries.set(id, { bodies: new Set([body]), body: JSON.parse(body) })
    else known.bodies.add(body)
    response.writeHead(known === undefined && deliveries.size % 3 === 0 ? 500 : 200).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    deliveries,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Documents about packages, of which those with an even number are written in TypeScript. */
async function writePackages(folder: string): Promise<void> {
  for (let index = 0; index < 12; index++) {
    const path = join(folder, `package-${index}`)
    const language = index % 2 === 0 ? 'TypeScript' : 'Rust'
    await mkdir(path, { recursive: true })
    await writeFile(
      join(path, 'README.md'),
      `# package-${index}\n\nLibrary number ${index} is written in ${language}.\n`,
    )
  }
}

const LICENSES = ['MIT', 'ISC', 'Apache 2.0', 'BSD 3-Clause'] as const

function licenseAt(kill: number): string {
  return LICENSES[kill % LICENSES.length] ?? ''
}

/** The document that snapshot monitors watch. It changes while no service is running. */
async function writeLicense(folder: string, license: string): Promise<void> {
  const path = join(folder, 'tidelib')
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'README.md'), `# tidelib\n\n## License\n\n${license}\n`)
}
