import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { ended, messageOf } from '../../../bench/child.ts'
import { programFiles } from '../../support/programs.ts'

/** How long to wait for a condition, such as a browser that has everything, in ms. */
const PATIENCE = 60_000

const fileOf = await programFiles()

function start(name: 'gateway-process' | 'recorder-process', args: readonly string[]): ChildProcess {
  return fork(fileOf(`test/gateway/soak/${name}.ts`), args, {
    execArgv: ['--conditions=rivulet-source'],
  })
}

/** A recorder in a process of its own. */
export class LimitedRecorder {
  readonly #child: ChildProcess
  /** How many events it has appended. */
  appended = 0
  /** How many of them it has deleted. */
  deleted = 0

  /** @param keep How many entries it keeps. Default: all of them. */
  constructor(file: string, events: number, seed: number, keep = 0) {
    this.#child = start('recorder-process', [file, `${events}`, `${seed}`, `${keep}`])
    this.#child.on('message', (message) => {
      const { appended, deleted } = Object(message)
      this.appended = Number(appended)
      this.deleted = Number(deleted)
    })
  }

  /** Lets it append up to this number of events, or some more. */
  limit(count: number): void {
    this.#child.send(count)
  }

  /** Resolves once it has appended this many. */
  async record(count: number): Promise<void> {
    this.limit(count)
    await until(() => this.appended >= count)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

/** A gateway in a process of its own. */
export class KilledGateway {
  readonly port: number
  readonly #child: ChildProcess
  readonly #granted = new Map<number, (token: string) => void>()
  readonly #gone: Promise<void>
  #requests = 0

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.#gone = ended(child)
    this.port = port
    child.on('message', (message) => {
      const { request, token } = Object(message)
      this.#granted.get(request)?.(token)
    })
  }

  /** @param holdsRetention Whether the log keeps what its views have not processed. */
  static async start(file: string, holdsRetention = true): Promise<KilledGateway> {
    const child = start('gateway-process', [file, String(holdsRetention)])
    const { port } = Object(await messageOf(child, 'the gateway', 'listened'))
    return new KilledGateway(child, Number(port))
  }

  /** A token. Rejects where it is killed meanwhile. */
  async token(): Promise<string> {
    const id = (this.#requests += 1)
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#granted.set(id, resolve)
    if (this.#child.connected) this.#child.send(id)
    const gone = this.#gone.then(() => Promise.reject(new Error('the gateway was killed')))
    return Promise.race([promise, gone])
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#gone
  }
}

/** Resolves once the condition holds, or after a while. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE
  while (!(await condition()) && performance.now() < deadline) await setTimeout(20)
}
