import { BodyIntake } from '../../http/body-intake.ts'
import { EVENT_STREAM_HEADERS } from '../../http/server-sent-events.ts'
import { viewAddress } from '../../protocol/live.ts'
import type { Refusal, ViewRequest } from '../../protocol/live.ts'
import type { Access } from '../access/access.ts'
import type { Counters } from '../feed/counters.ts'
import type { FollowedView } from '../feed/followed-view.ts'
import { refusalResponse } from '../http-answer.ts'
import { Connection } from './connection.ts'
import type { DeniedView } from './connection.ts'
import { viewRequests } from './stream-request.ts'
import { Subscription } from './subscription.ts'

/** Limits of the bodies of all requests for streams. */
const BODIES = { maxBodyBytes: 256 * 1024, maxBytesInFlight: 16 * 1024 * 1024, bodyTimeout: 10_000 }

const HEADERS = { ...EVENT_STREAM_HEADERS, 'cache-control': 'no-store, no-transform' }

/** The dependencies of the streams. */
export interface StreamsOptions {
  readonly views: ReadonlyMap<string, FollowedView>
  /** Interval between heartbeats, in ms. */
  readonly heartbeat: number
  readonly behind: (views: readonly string[]) => Promise<number | undefined>
  readonly counters: Counters
}

/** The open connections of a gateway. */
export class Streams {
  readonly #options: StreamsOptions
  readonly #intake = new BodyIntake(BODIES)
  readonly #open = new Set<Connection>()
  #isClosed = false

  constructor(options: StreamsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#open.size
  }

  /**
   * Answers a request for a stream.
   *
   * @param release Called once, when the connection has ended or was not made.
   */
  async respond(request: Request, access: Access, release: () => void): Promise<Response> {
    const requests = await viewRequests(request, this.#intake).catch((error: unknown) => {
      release()
      throw error
    })
    if (requests instanceof Response) {
      release()
      return requests
    }
    if (this.#isClosed) {
      release()
      return refusalResponse('unavailable', 'the gateway is closed')
    }
    return new Response(this.#connect(requests, access, request, release), {
      headers: HEADERS,
    })
  }

  /** Ends a view for all of its followers. */
  deny(view: string, problem: Refusal): void {
    for (const each of this.#open) each.deny(view, problem)
  }

  /** Ends all connections, and refuses those whose requests are still on their way. */
  close(): void {
    this.#isClosed = true
    for (const each of this.#open) each.close('shutdown')
  }

  #connect(
    requests: readonly ViewRequest[],
    access: Access,
    { method, signal }: Request,
    release: () => void,
  ): ReadableStream<Uint8Array> {
    const views = requests.map((request): Subscription | DeniedView => {
      const made = this.#subscription(request, access)
      if (made instanceof Subscription) return made
      this.#options.counters.refused('stream', made.code)
      return { address: viewAddress(request.view, request.params), problem: made }
    })
    const { heartbeat, behind, counters } = this.#options
    const disconnected = counters.connected()
    const onClose = () => {
      this.#open.delete(connection)
      disconnected()
      release()
    }
    const connection = new Connection({
      access,
      views,
      heartbeat,
      hasIds: method === 'GET',
      behind,
      onSent: (bytes) => counters.sent(bytes),
      onClose,
    })
    this.#open.add(connection)
    // Some runtimes abort the request when the client is gone. The others cancel the body.
    if (signal.aborted) connection.abandon()
    else signal.addEventListener('abort', () => connection.abandon(), { once: true })
    return connection.body
  }

  #subscription({ view: name, params = {}, after }: ViewRequest, access: Access): Subscription | Refusal {
    const view = this.#options.views.get(name)
    if (view === undefined) return { code: 'unknown_view', message: 'the gateway has no such view' }
    if (!access.maySeeView(name)) return { code: 'forbidden', message: 'the grant does not name this view' }
    const scope = view.scope(params)
    if (scope === undefined) return { code: 'invalid', message: 'these are not the params of the view' }
    const source = view.sourceOfScope(scope)
    if (source !== undefined && !access.maySeeSource(source)) {
      return { code: 'forbidden', message: 'the grant does not name this source' }
    }
    if (view.failure !== undefined) return unavailable()
    return new Subscription(view, scope, access, after)
  }
}

/** The refusal of a view that is no longer maintained. */
export function unavailable(): Refusal {
  return { code: 'unavailable', message: 'the view has failed' }
}
