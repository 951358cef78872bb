import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { TextMapPropagator } from '@opentelemetry/api'
import { ConnectionError, createClient } from 'rivulet'
import type { ClientOptions } from 'rivulet'
import { instrument } from 'rivulet/otel'
import { firstValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { closedOrigin, json, serve } from '../transport/server.ts'
import { collecting, failing, keepContext, propagateContext, total } from './telemetry.ts'

const KEY = 'key_of_the_test'

function clientOf(baseUrl: string, options: ClientOptions = {}) {
  return createClient({ baseUrl, apiKey: KEY, initialDelay: 0, maxDelay: 0, ...options })
}

const MONITOR = { monitor_id: 'monitor_1', status: 'active' }

describe('the requests of a client', () => {
  it('are measured and traced, with a template and no id in the metric', async () => {
    const { origin } = await serve((_, response) => json(response, 200, MONITOR))
    const { meter, tracer, metrics, series, spans } = collecting()
    const client = clientOf(`${origin}/prefix`)
    instrument({ client, meter, tracer })
    await client.monitors.get('monitor_1')

    const shared = {
      'http.request.method': 'GET',
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(origin).port),
      'url.template': '/v1/monitors/{monitor_id}',
      'http.response.status_code': 200,
    }
    expect(await series('http.client.request.duration')).toEqual([{ attributes: shared, value: 1 }])
    const [metric] = await metrics()
    expect(metric?.descriptor.unit).toBe('s')
    const [span] = spans()
    expect(span).toMatchObject({
      name: 'GET /v1/monitors/{monitor_id}',
      kind: SpanKind.CLIENT,
      status: { code: SpanStatusCode.UNSET },
      attributes: { ...shared, 'url.full': `${origin}/prefix/v1/monitors/monitor_1` },
    })
    expect(JSON.stringify([...(await metrics()), span?.attributes])).not.toContain(KEY)
  })

  it('are one span for each attempt, and count retries', async () => {
    let requests = 0
    const { origin } = await serve((_, response) => {
      requests += 1
      json(response, requests === 1 ? 503 : 200, MONITOR)
    })
    const { meter, tracer, series, spans } = collecting()
    const client = clientOf(origin)
    instrument({ client, meter, tracer })
    await client.monitors.get('m')

    expect(
      spans().map(({ attributes, status }) => [attributes['http.request.resend_count'], status.code]),
    ).toEqual([
      [undefined, SpanStatusCode.ERROR],
      [1, SpanStatusCode.UNSET],
    ])
    expect(spans()[0]?.attributes).toMatchObject({ 'error.type': '503', 'http.response.status_code': 503 })
    expect(await series('rivulet.client.retries')).toEqual([
      {
        attributes: {
          'http.request.method': 'GET',
          'url.template': '/v1/monitors/{monitor_id}',
          'error.type': '503',
        },
        value: 1,
      },
    ])
    expect(total(await series('http.client.request.duration'))).toBe(2)
  })

  it('have the kind of failure of a service that cannot be reached', async () => {
    const { meter, tracer, series, spans } = collecting()
    const client = clientOf(await closedOrigin(), { retries: 0 })
    instrument({ client, meter, tracer })

    await expect(firstValueFrom(client.monitors.get('m'))).rejects.toBeInstanceOf(ConnectionError)
    expect(spans()).toMatchObject([
      { attributes: { 'error.type': 'refused' }, status: { code: SpanStatusCode.ERROR } },
    ])
    const [only] = await series('http.client.request.duration')
    expect(only?.attributes).toMatchObject({ 'error.type': 'refused' })
    expect(only?.attributes).not.toHaveProperty('http.response.status_code')
  })

  it('to a path that is not of the interface have no template', async () => {
    const { origin } = await serve((_, response) => json(response, 200, {}))
    const { meter, tracer, series, spans } = collecting()
    const client = clientOf(origin)
    instrument({ client, meter, tracer })
    await client.get('/v9/things/secret-thing')

    expect(spans().map(({ name }) => name)).toEqual(['GET'])
    expect(JSON.stringify(await series('http.client.request.duration'))).not.toContain('thing')
  })

  it('send no trace context, unless it is asked for', async () => {
    const received: unknown[] = []
    const { origin } = await serve((request, response) => {
      received.push(request.headers['x-trace'])
      json(response, 200, MONITOR)
    })
    const propagator: TextMapPropagator = {
      inject: (context, carrier, setter) =>
        setter.set(carrier, 'x-trace', trace.getSpanContext(context)?.spanId ?? 'none'),
      extract: (context) => context,
      fields: () => ['x-trace'],
    }
    propagateContext(propagator)
    const { meter, tracer, spans } = collecting()
    const client = clientOf(origin)
    const silent = instrument({ client, meter, tracer })
    await client.monitors.get('m')
    silent.dispose()
    instrument({ client, meter, tracer, propagate: true })
    await client.monitors.get('m')

    expect(received).toEqual([undefined, spans()[1]?.spanContext().spanId])
  })

  it('are children of the span that is active', async () => {
    keepContext()
    const { origin } = await serve((_, response) => json(response, 200, MONITOR))
    const { meter, tracer, spans } = collecting()
    const client = clientOf(origin)
    instrument({ client, meter, tracer })
    await tracer.startActiveSpan('mine', async (span) => {
      await client.monitors.get('m')
      span.end()
    })

    const [request, mine] = spans()
    expect(request?.parentSpanContext?.spanId).toBe(mine?.spanContext().spanId)
  })
})

describe('the streams of a client', () => {
  it('are counted while they are open, and measured until they have begun', async () => {
    const { promise: isEnough, resolve: enough } = Promise.withResolvers<void>()
    const { origin } = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
      void isEnough.then(() => response.end())
    })
    const { meter, tracer, series, spans } = collecting()
    const client = clientOf(origin)
    instrument({ client, meter, tracer })
    const first = Promise.withResolvers<unknown>()
    const last = Promise.withResolvers<void>()
    client
      .stream('/v1/tasks/groups/g/events')
      .subscribe({ next: first.resolve, error: last.reject, complete: last.resolve })
    await first.promise
    const open = total(await series('rivulet.client.streams'))
    const measured = spans().length
    enough()
    await last.promise

    expect([open, measured]).toEqual([1, 1])
    expect(total(await series('rivulet.client.streams'))).toBe(0)
    expect(await series('http.client.request.duration')).toMatchObject([
      { attributes: { 'url.template': '/v1/tasks/groups/{taskgroup_id}/events' }, value: 1 },
    ])
  })
})

describe('the end of an instrumentation', () => {
  it('leaves the client as it was', async () => {
    const { origin } = await serve((_, response) => json(response, 200, MONITOR))
    const { meter, tracer, spans } = collecting()
    const client = clientOf(origin)
    {
      using telemetry = instrument({ client, meter, tracer })
      await client.monitors.get('m')
      void telemetry
    }
    await client.monitors.get('m')

    expect(spans()).toHaveLength(1)
  })
})

describe('a meter and a tracer that fail', () => {
  it('do not affect requests', async () => {
    const { origin } = await serve((_, response) => json(response, 200, MONITOR))
    const client = clientOf(origin)
    instrument({ client, ...failing() })

    await expect(firstValueFrom(client.monitors.get('m'))).resolves.toMatchObject(MONITOR)
  })

  it('are refused, as anything else that cannot be instrumented, at the call', () => {
    expect(() => instrument({})).toThrow(/instrument needs a client, a log or a gateway/)
    expect(() => instrument({ client: clientOf('http://127.0.0.1:1'), trace: true } as object)).toThrow(
      /trace/,
    )
  })
})
