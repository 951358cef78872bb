import { checkFunction, checkOneOf, checkText } from '../protocol/check.ts'
import type { ViewRequest, ViewShapes } from '../protocol/live.ts'
import { callAll } from './call-all.ts'
import { Client } from './client.ts'
import { platform } from './environment.ts'
import type { Environment } from './environment.ts'
import type { ConnectOptions, Live, LiveObservable, ObservableView } from './live.ts'
import { LiveError } from './live-error.ts'
import type { ViewStore } from './view-store.ts'

const OPTIONS = Object.keys({
  url: true,
  getToken: true,
  share: true,
  offline: true,
  initial: true,
} satisfies Record<keyof ConnectOptions, true>)

/**
 * Connects a page to a gateway. Nothing is sent before the first subscription to a view, so it can be called while a server renders.
 *
 * ```ts
 * import { connect } from 'rivulet/live'
 * import type { ViewShape } from 'rivulet/live'
 *
 * interface Alert { readonly state: string }
 *
 * const live = connect<{ alerts: ViewShape<Alert> }>({
 *   url: '/live',
 *   getToken: async () => (await fetch('/token', { method: 'POST' })).text(),
 * })
 * const end = live.view('alerts').subscribe(({ rows, status }) => {
 *   document.title = `${rows.size} alerts, ${status.state}`
 * })
 * ```
 *
 * @throws ArgumentError for an unknown option, and without a `url` or `getToken`.
 */
export function connect<V extends ViewShapes>(options: ConnectOptions): Live<V> {
  return connectIn(options, platform())
}

/**
 * {@link connect} on another platform.
 *
 * @internal
 */
export function connectIn<V extends ViewShapes>(options: ConnectOptions, environment: Environment): Live<V> {
  // Suggests no nearest name, as other entry points do: that would be a twentieth of the code that a page loads.
  for (const name of Object.keys(Object(options))) checkOneOf('option', name, OPTIONS)
  checkText('url', options?.url)
  checkFunction('getToken', options.getToken)
  const client = new Client(options, environment)
  const viewOf = (request: ViewRequest) => {
    const store = client.store(request)
    return (store.view ??= makeView(store, client))
  }
  // Its code is loaded only when it is used.
  const ask = async (path: string, body: object, signal: AbortSignal | undefined) => {
    const { askGateway } = await import('./requests.ts').catch((cause: unknown) => {
      throw new LiveError('network', 'The code of requests did not load', { cause })
    })
    return askGateway({ tokens: client.tokens, environment }, client.url + path, body, signal)
  }
  return {
    // The gateway sends rows and answers of these types.
    view: (view, params?: Readonly<Record<string, string>>) =>
      viewOf(params === undefined ? { view } : { view, params }) as never,
    status: storeOf(client.statusListeners, () => client.status),
    inspect: storeOf(client.inspectListeners, () => client.inspect()),
    search: async (request, { signal } = {}) => (await ask('/search', request, signal)) as never,
    addRuns: async (group, request, { signal } = {}) =>
      (await ask('/runs', { ...request, group }, signal)) as never,
    close: () => client.close(),
    [Symbol.dispose]: () => client.close(),
  }
}

function makeView(store: ViewStore, client: Client): ObservableView<unknown> {
  const rows = observableOf(
    (listener) => client.subscribe(store, listener),
    () => store.snapshot,
  )
  return Object.assign(rows, {
    address: store.address,
    getServerSnapshot: () => store.initial,
    status: () => store.snapshot.status,
  })
}

function storeOf<Value>(listeners: Set<(value: Value) => void>, getSnapshot: () => Value) {
  return observableOf<Value>((listener) => {
    listeners.add(listener)
    callAll([listener], getSnapshot())
    return () => void listeners.delete(listener)
  }, getSnapshot)
}

/** @param listen Called with a new function each time. Returns a function that ends the subscription and may be called twice. */
function observableOf<Value>(
  listen: (listener: (value: Value) => void) => () => void,
  getSnapshot: () => Value,
): LiveObservable<Value> {
  const observable = () => values
  const values = {
    subscribe(observer: Parameters<LiveObservable<Value>['subscribe']>[0]) {
      const end = listen((value) => {
        if (typeof observer === 'function') observer(value)
        else observer.next?.(value)
      })
      return Object.assign(end, { unsubscribe: end })
    },
    getSnapshot,
    // Libraries look for the symbol if the platform or a polyfill has it, else for this text.
    [Symbol.observable ?? '@@observable']: observable,
    '@@observable': observable,
  } as LiveObservable<Value>
  return values
}
