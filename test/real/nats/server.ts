import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'

const PROGRAM = 'nats-server'
const CONFIGURATION = 'nats.conf'

/** How long a server may take to start, in ms. */
const PATIENCE = 20_000

/** A real NATS server with JetStream, on a free port and with a store of its own. */
export class NatsServer {
  readonly #folder: string
  readonly #args: readonly string[]
  #process: ChildProcess | undefined
  /** The port, which stays the same over restarts. */
  port = -1
  /** The port for other servers of its cluster, if it has one. Each start may change it. */
  clusterPort = 0

  private constructor(folder: string, args: readonly string[]) {
    this.#folder = folder
    this.#args = args
  }

  /** @param config The text of its configuration file. Default: none. */
  static async start(config?: string): Promise<NatsServer> {
    const folder = await mkdtemp(join(tmpdir(), 'rivulet-nats-'))
    const file = join(folder, CONFIGURATION)
    if (config !== undefined) await writeFile(file, config)
    const server = new NatsServer(folder, config === undefined ? [] : ['-c', file])
    await server.resume()
    return server
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`
  }

  /** The process, for signals. */
  get pid(): number {
    return this.#process?.pid ?? -1
  }

  /** Starts the process again, with the same store and port. */
  async resume(): Promise<void> {
    const ports = this.#folder
    const child = spawn(
      PROGRAM,
      [
        ...this.#args,
        '-js',
        '-sd',
        join(this.#folder, 'store'),
        '-a',
        '127.0.0.1',
        '-p',
        String(this.port),
        '--ports_file_dir',
        ports,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    this.#process = child
    let output = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (output += text))
    const file = join(ports, `nats-server_${child.pid}.ports`)
    const deadline = performance.now() + PATIENCE
    for (;;) {
      const text = await readFile(file, 'utf8').catch(() => '')
      if (text !== '' && output.includes('Server is ready')) {
        const { nats, cluster = [] }: { nats: readonly string[]; cluster?: readonly string[] } =
          JSON.parse(text)
        this.port = Number(new URL(nats[0] ?? '').port)
        const [address] = cluster
        if (address !== undefined) this.clusterPort = Number(new URL(address).port)
        return
      }
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error(`nats-server did not start: ${output}`)
      }
      await after(10)
    }
  }

  /** Replaces the configuration file with which it was started. It counts from the next start on. */
  async configure(config: string): Promise<void> {
    await writeFile(join(this.#folder, CONFIGURATION), config)
  }

  /** Kills the process at once. Its store stays. */
  async kill(): Promise<void> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  /** Kills the process, copies its store, and starts it again. What is returned puts the copy in the place of the store in the same way. */
  async backup(): Promise<() => Promise<void>> {
    await this.kill()
    const restore = await this.copied()
    await this.resume()
    return async () => {
      await this.kill()
      await restore()
      await this.resume()
    }
  }

  /** Copies the store of a process that was killed. What is returned puts the copy in its place, after the process was killed again. */
  async copied(): Promise<() => Promise<void>> {
    const store = join(this.#folder, 'store')
    const copy = join(this.#folder, 'copy')
    await cp(store, copy, { recursive: true })
    return async () => {
      await rm(store, { recursive: true })
      await cp(copy, store, { recursive: true })
    }
  }

  /** Kills the process and removes its store. */
  async remove(): Promise<void> {
    await this.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }
}
