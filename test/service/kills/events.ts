import { isObject } from '../../../src/protocol/json.ts'

/** An event of a stream. */
export interface StreamEvent {
  readonly id: string
  readonly data: Readonly<Record<string, unknown>>
}

/** The events of a stream that has ended. */
export function eventsOf(stream: string): StreamEvent[] {
  return stream.split('\n\n').flatMap((block) => {
    const line = (name: string) =>
      block
        .split('\n')
        .find((text) => text.startsWith(`${name}: `))
        ?.slice(name.length + 2)
    const text = line('data') ?? 'null'
    const data: unknown = text === '[DONE]' ? undefined : JSON.parse(text)
    return isObject(data) ? [{ id: line('id') ?? '', data }] : []
  })
}
