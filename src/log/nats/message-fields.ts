import type { Msg } from '@nats-io/transport-node'

/** How the fields of a message begin. They end with an empty line, and the payload follows. */
const START = 'NATS/1.0\r\n'
const LINE_END = '\r\n'
const END = '\r\n\r\n'

/** Longer fields are left to the client, in bytes. */
const MAX_LENGTH = 4_096

/**
 * Reads single fields of a message: the first of exactly this name, an empty text for none.
 *
 * The client decodes all fields at once, which took a quarter of a reader's time. As a rule, they are in memory directly before the
 * payload, which is a view of what the server has sent, and are looked up there. Where they are not found so, the client decodes them.
 */
export function fieldReader(message: Pick<Msg, 'data' | 'headers'>): (name: string) => string {
  let text: string | undefined
  return (name) => {
    text ??= textBefore(message.data)
    return text === '' ? (message.headers?.get(name) ?? '') : valueIn(text, name)
  }
}

/** The fields directly before a payload with the line before them; empty where they are not certain to be there. */
function textBefore({ buffer, byteOffset }: Uint8Array): string {
  const from = Math.max(0, byteOffset - MAX_LENGTH)
  const bytes = Buffer.from(buffer, from, byteOffset - from)
  const start = bytes.lastIndexOf(START)
  if (start < 0) return ''
  // Not within a value.
  const isLine = from + start === 0 || bytes.toString('latin1', Math.max(0, start - 2), start) === LINE_END
  const text = bytes.toString('utf8', start)
  // Otherwise they are those of an earlier message, and this one has none.
  const isOwn = text.indexOf(END) === text.length - END.length
  return isLine && isOwn ? text : ''
}

function valueIn(text: string, name: string): string {
  const start = text.indexOf(`${LINE_END}${name}:`)
  if (start < 0) return ''
  const from = start + LINE_END.length + name.length + 1
  return text.slice(from, text.indexOf(LINE_END, from)).trim()
}
