import { createParser } from 'eventsource-parser'
import { onTestFinished } from 'vitest'
import type { RowState } from 'rivulet/live'
import type { LiveFrames, ViewRequest } from '../../src/protocol/live.ts'

/** A frame as a client gets it. */
export type Frame = {
  [Name in keyof LiveFrames]: { readonly name: Name; readonly data: LiveFrames[Name]; readonly id?: string }
}[keyof LiveFrames]

/** What a client makes of frames: the rows of each view, by address and key. */
export class ClientModel {
  readonly views = new Map<string, Map<string, unknown>>()
  readonly positions = new Map<string, string>()
  readonly gaps: { readonly view: string; readonly reason: string }[] = []

  take({ name, data }: Frame): void {
    if (name === 'snapshot') {
      if (data.first) this.views.set(data.view, new Map())
      this.#apply(data.view, data.rows)
      if (data.position !== undefined) this.positions.set(data.view, data.position)
      else this.positions.delete(data.view)
    } else if (name === 'changes') {
      this.#apply(data.view, data.rows)
      this.positions.set(data.view, data.position)
    } else if (name === 'position') this.positions.set(data.view, data.position)
    else if (name === 'gap') this.gaps.push(data)
  }

  rows(address: string): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.views.get(address) ?? [])
  }

  #apply(view: string, rows: readonly RowState[]): void {
    const known = this.views.get(view) ?? new Map<string, unknown>()
    this.views.set(view, known)
    for (const [key, state] of rows) {
      if (state === null) known.delete(key)
      else known.set(key, state)
    }
  }
}

/** An open stream of a gateway. */
export class Stream {
  readonly response: Response
  readonly model: ClientModel
  readonly frames: Frame[] = []
  /** How much it has read. */
  bytes = 0
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #parser
  readonly #decoder = new TextDecoder()
  #taken = 0

  constructor(response: Response, model: ClientModel) {
    if (response.body === null) throw new Error('the response has no body')
    this.response = response
    this.model = model
    this.#reader = response.body.getReader()
    this.#parser = createParser({
      onEvent: ({ event, data, id }) => {
        const frame = { name: event, data: JSON.parse(data), ...(id !== undefined && { id }) } as Frame
        this.frames.push(frame)
        model.take(frame)
      },
    })
  }

  /** The next frame; undefined at the end. */
  async next(): Promise<Frame | undefined> {
    while (this.#taken === this.frames.length) {
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      this.bytes += value.byteLength
      this.#parser.feed(this.#decoder.decode(value, { stream: true }))
    }
    return this.frames[this.#taken++]
  }

  /** Reads on until a frame is as wanted. */
  async until<Name extends Frame['name']>(
    name: Name,
    isWanted: (frame: Extract<Frame, { readonly name: Name }>) => boolean = () => true,
  ): Promise<Extract<Frame, { readonly name: Name }>> {
    for (;;) {
      const frame = await this.next()
      if (frame === undefined) throw new Error(`the stream has ended before a frame ${name}`)
      const is = (each: Frame): each is Extract<Frame, { readonly name: Name }> => each.name === name
      if (is(frame) && isWanted(frame)) return frame
    }
  }

  /** Reads on until this is so. */
  async untilRows(isReached: (model: ClientModel) => boolean): Promise<void> {
    while (!isReached(this.model)) {
      if ((await this.next()) === undefined) throw new Error('the stream has ended')
    }
  }

  /** Cuts the connection. */
  async close(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined)
  }
}

/** Opens a stream over `fetch`, or any other function from `Request` to `Response`. */
export async function openStream(
  url: string,
  token: string,
  views: readonly ViewRequest[],
  { model = new ClientModel(), fetcher = fetch as (request: Request) => Promise<Response> } = {},
): Promise<Stream> {
  const response = await fetcher(
    new Request(`${url}/stream`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ views }),
    }),
  )
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const stream = new Stream(response, model)
  onTestFinished(() => stream.close())
  return stream
}
