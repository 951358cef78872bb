import { setTimeout as after } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import type { JetStreamManager, StreamInfo } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { NatsConnection } from '@nats-io/transport-node'
import { Gate } from './gate.ts'
import { NatsServer } from './server.ts'

/** How long a cluster may take to have a leader, in ms. */
const PATIENCE = 60_000

const SERVERS = 3

/**
 * Three real NATS servers in a cluster. Each way from one to another, and that of the clients to each, is a gate that can be shut;
 * so the ports of the servers may change over restarts.
 */
export class NatsCluster {
  readonly #servers: NatsServer[] = []
  /** The way of the clients to each server. */
  readonly #doors: Gate[] = []
  /** The same of certain clients. */
  readonly #ways: (readonly Gate[])[] = []
  /** The way from each server to each other one. */
  readonly #routes: Gate[][] = []
  #nats: NatsConnection | undefined

  private constructor() {}

  static async start(): Promise<NatsCluster> {
    const cluster = new NatsCluster()
    const indexes = Array.from({ length: SERVERS }, (_, i) => i)
    for (const i of indexes) {
      cluster.#doors.push(await Gate.start())
      cluster.#routes.push(await Promise.all(indexes.map(() => Gate.start())))
      const routes = indexes
        .filter((to) => to !== i)
        .map((to) => `"nats://127.0.0.1:${cluster.#route(i, to).port}"`)
      cluster.#servers.push(
        await NatsServer.start(`
          server_name: "server-${i}"
          cluster {
            name: "rivulet-tests"
            listen: "127.0.0.1:-1"
            # Otherwise servers and clients would find ways around the gates.
            advertise: "127.0.0.1:1"
            no_advertise: true
            routes: [${routes.join(', ')}]
          }`),
      )
      cluster.#aim(i)
    }
    await cluster.#untilPlaced()
    return cluster
  }

  /** The addresses of all servers, for clients. */
  get urls(): string[] {
    return this.#doors.map((_, i) => this.url(i))
  }

  /** The address of a server, for clients. */
  url(index: number): string {
    return `nats://127.0.0.1:${this.#doors[index]?.port}`
  }

  /** Ways of a client's own to all servers, by which it can be led to one of them. */
  async ways(): Promise<{
    readonly urls: readonly string[]
    readonly lead: (index: number) => Promise<void>
  }> {
    const gates = await Promise.all(this.#servers.map(() => Gate.start()))
    this.#ways.push(gates)
    for (const index of this.#servers.keys()) this.#aim(index)
    return {
      urls: gates.map(({ port }) => `nats://127.0.0.1:${port}`),
      lead: async (index: number) => {
        for (const [i, gate] of gates.entries()) if (i !== index) gate.shut()
        await this.#until(async () => (gates[index]?.connections ?? 0) - 1)
        for (const gate of gates) gate.open()
      },
    }
  }

  server(index: number): NatsServer {
    const server = this.#servers[index]
    if (server === undefined) throw new Error(`there is no server ${index}`)
    return server
  }

  async kill(index: number): Promise<void> {
    await this.server(index).kill()
  }

  /** Starts a server again that was killed. */
  async resume(index: number): Promise<void> {
    await this.server(index).resume()
    this.#aim(index)
  }

  /** Kills all servers, copies their stores, and starts them again. What is returned puts the copies in the place of the stores in the same way. */
  async backup(): Promise<() => Promise<void>> {
    const indexes = [...this.#servers.keys()]
    const whileDown = async <Result>(work: (server: NatsServer) => Promise<Result>) => {
      await Promise.all(indexes.map((index) => this.kill(index)))
      const results = await Promise.all(this.#servers.map(work))
      for (const index of indexes) await this.resume(index)
      return results
    }
    const restores = await whileDown((server) => server.copied())
    return async () => {
      await whileDown(async (server) => restores[this.#servers.indexOf(server)]?.())
    }
  }

  /** Cuts a server off from the others. Clients can connect to it as before. */
  cut(index: number): void {
    for (const gate of this.#between(index)) gate.shut()
  }

  /** Lets a server and the others connect again. */
  heal(index: number): void {
    for (const gate of this.#between(index)) gate.open()
  }

  /** The server that leads a stream, or -1 while none does, by the answer of one that is in touch with most. */
  async leader(stream: string): Promise<number> {
    const info = await this.info(stream).catch(() => undefined)
    return this.#index(info?.cluster?.leader)
  }

  /** Has another server lead a stream. Resolves once one does. */
  async moveLeader(stream: string): Promise<void> {
    const before = await this.#until(() => this.leader(stream))
    const { nats } = await this.manager()
    await nats.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, '', { timeout: 2_000 }).catch(() => {})
    await this.#until(async () => {
      const leader = await this.leader(stream)
      return leader === before ? -1 : leader
    })
  }

  /** Has a certain server lead a stream. */
  async lead(stream: string, index: number): Promise<void> {
    const deadline = performance.now() + PATIENCE
    while ((await this.leader(stream)) !== index) {
      if (performance.now() > deadline) throw new Error(`server ${index} does not lead ${stream}`)
      await this.moveLeader(stream)
    }
  }

  async info(stream: string): Promise<StreamInfo> {
    const { jsm } = await this.manager()
    return jsm.streams.info(stream)
  }

  /** A connection of the test's own, to any of the servers. */
  async manager(): Promise<{ readonly nats: NatsConnection; readonly jsm: JetStreamManager }> {
    this.#nats ??= await connect({ servers: this.urls, maxReconnectAttempts: -1, reconnectTimeWait: 50 })
    return {
      nats: this.#nats,
      jsm: await jetstreamManager(this.#nats, { timeout: 2_000, checkAPI: false }),
    }
  }

  /** Resolves once all servers have the whole of these streams. */
  async whole(...streams: readonly string[]): Promise<void> {
    await this.#until(async () => {
      for (const stream of streams) {
        const { cluster } = await this.info(stream)
        const isWhole =
          cluster?.leader !== undefined &&
          cluster.replicas?.length === SERVERS - 1 &&
          cluster.replicas.every(({ current, offline }) => current && offline !== true)
        if (!isWhole) return -1
      }
      return 0
    })
  }

  /** Kills the servers and removes their stores. */
  async remove(): Promise<void> {
    await this.#nats?.close()
    await Promise.all(this.#servers.map((server) => server.remove()))
    for (const gate of [...this.#doors, ...this.#ways.flat(), ...this.#routes.flat()]) gate.close()
  }

  /** Resolves once streams can have a copy on each server. */
  async #untilPlaced(): Promise<void> {
    const probe = { name: 'probe', subjects: ['probe'], num_replicas: SERVERS }
    await this.#until(async () => {
      const { jsm } = await this.manager()
      await jsm.streams.add(probe)
      return 0
    })
    await this.whole(probe.name)
    await (await this.manager()).jsm.streams.delete(probe.name)
  }

  async #until(look: () => Promise<number>): Promise<number> {
    const deadline = performance.now() + PATIENCE
    for (;;) {
      const found = await look().catch(() => -1)
      if (found >= 0) return found
      if (performance.now() > deadline) throw new Error('the cluster is not ready')
      await after(20)
    }
  }

  #index(name = ''): number {
    return Number(/^server-(\d)$/.exec(name)?.[1] ?? -1)
  }

  #route(from: number, to: number): Gate {
    const gate = this.#routes[from]?.[to]
    if (gate === undefined) throw new Error(`there is no way from ${from} to ${to}`)
    return gate
  }

  #between(index: number): readonly Gate[] {
    return this.#routes.flatMap((ways, from) => ways.filter((_, to) => from === index || to === index))
  }

  /** Points the gates to where a server is. */
  #aim(index: number): void {
    const { port, clusterPort } = this.server(index)
    for (const doors of [this.#doors, ...this.#ways]) {
      const door = doors[index]
      if (door !== undefined) door.target = port
    }
    for (const ways of this.#routes) {
      const gate = ways[index]
      if (gate !== undefined) gate.target = clusterPort
    }
  }
}
