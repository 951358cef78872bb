import { execFile, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

const PROGRAM = 'prometheus-alertmanager'

/** How often another program may take a reserved port before this gives up. */
const ATTEMPTS = 5

/** An alert of `GET /api/v2/alerts`. */
export interface ListedAlert {
  readonly labels: Readonly<Record<string, string>>
  readonly status: {
    readonly state: string
    readonly silencedBy: readonly string[]
    readonly inhibitedBy: readonly string[]
  }
}

/** A configuration that notifies fast, at a webhook. */
export function configOf(webhook: string, more = '', groupInterval = '1s'): string {
  return `
route:
  receiver: test
  group_by: [alertname]
  group_wait: 200ms
  group_interval: ${groupInterval}
  repeat_interval: 1h
receivers:
  - name: test
    webhook_configs:
      - url: ${webhook}
        send_resolved: true
${more}`
}

/** A real Alertmanager, ended with the test. */
export class Alertmanager {
  readonly url: string
  readonly #folder: string
  readonly #arguments: readonly string[]
  #child: ChildProcess

  private constructor(url: string, folder: string, args: readonly string[], child: ChildProcess) {
    this.url = url
    this.#folder = folder
    this.#arguments = args
    this.#child = child
  }

  /**
   * Starts one on ports that were free.
   *
   * @param cluster Its own address in a cluster, and that of a member. Default: no cluster.
   */
  static async start(config: string, cluster?: { readonly join: string | undefined }) {
    const folder = await mkdtemp(join(tmpdir(), 'rivulet-alertmanager-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    await writeFile(join(folder, 'config.yml'), config)
    for (let attempt = 1; ; attempt++) {
      const [web, gossip] = await Promise.all([freePort(), freePort()])
      const address = cluster === undefined ? '' : `127.0.0.1:${gossip}`
      const args = [
        `--web.listen-address=127.0.0.1:${web}`,
        `--cluster.listen-address=${address}`,
        ...(cluster === undefined
          ? []
          : [
              '--cluster.peer-timeout=1500ms',
              '--cluster.gossip-interval=50ms',
              '--cluster.pushpull-interval=300ms',
            ]),
        ...(cluster?.join === undefined ? [] : [`--cluster.peer=${cluster.join}`]),
      ]
      const child = await run(folder, args)
      if (child !== undefined) {
        const started = new Alertmanager(`http://127.0.0.1:${web}`, folder, args, child)
        onTestFinished(() => started.stop())
        return Object.assign(started, { address })
      }
      if (attempt === ATTEMPTS) throw new Error(`${PROGRAM} did not start`)
    }
  }

  /** Ends it as its service does, so that it saves what it has notified. */
  async stop(): Promise<void> {
    const child = this.#child
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }

  async startAgain(): Promise<void> {
    const child = await run(this.#folder, this.#arguments)
    if (child === undefined) throw new Error(`${PROGRAM} did not start again`)
    this.#child = child
  }

  async alerts(): Promise<readonly ListedAlert[]> {
    const response = await fetch(`${this.url}/api/v2/alerts`)
    const alerts: readonly ListedAlert[] = await response.json()
    return alerts
  }

  /** Resolves once it has an alert like this. */
  async has(name: string, isIt: (alert: ListedAlert) => boolean = () => true): Promise<void> {
    await this.#until(async () =>
      (await this.alerts()).some((alert) => alert.labels['alertname'] === name && isIt(alert)),
    )
  }

  /** Resolves once it has looked in its log of notifications so often: for each flush of a group. */
  async lookedUp(count: number): Promise<void> {
    await this.#until(async () => (await this.#lookups()) >= count)
  }

  /** Resolves once a group that still has alerts was flushed again: what was notified before is in the log of notifications. */
  async flushed(): Promise<void> {
    await this.lookedUp((await this.#lookups()) + 2)
  }

  async #lookups(): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text()
    return Number(/^alertmanager_nflog_queries_total (\d+)/m.exec(text)?.[1])
  }

  /** Resolves once so many members are in its cluster. */
  async members(count: number): Promise<void> {
    await this.#until(async () => {
      const status = await (await fetch(`${this.url}/api/v2/status`)).json()
      return status.cluster.status === 'ready' && status.cluster.peers.length === count
    })
  }

  async amtool(...args: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)('amtool', [...args, `--alertmanager.url=${this.url}`])
    return stdout.trim()
  }

  /** It does not report a change, so it is asked. */
  async #until(condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) await setTimeout(20)
  }
}

/** Resolves once it listens, and with undefined where it ended instead. */
async function run(folder: string, args: readonly string[]): Promise<ChildProcess | undefined> {
  const child = spawn(
    PROGRAM,
    [`--config.file=${join(folder, 'config.yml')}`, `--storage.path=${join(folder, 'data')}`, ...args],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const ended = new Promise<undefined>((resolve, reject) => {
    child.once('exit', () => resolve(undefined))
    child.once('error', reject)
  })
  const listens = new Promise<ChildProcess>((resolve) => {
    createInterface(child.stderr).on('line', (line) => {
      if (line.includes('TLS is disabled')) resolve(child)
    })
  })
  return Promise.race([listens, ended])
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
