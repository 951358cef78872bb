import { Parser } from 'htmlparser2'
import { decodeText } from '../extract/charset.ts'
import { WebError } from '../web/web-error.ts'

/** XML is parsed in parts of this length, in characters, until enough was read. */
const PART_LENGTH = 65_536
/** Maximum nesting. */
const MAX_DEPTH = 64
/** Maximum number of elements. */
const MAX_ELEMENTS = 1_000_000
/** How much of a document is searched for its root, in characters. */
const HEAD_LENGTH = 8_192

/** Receives the parts of an XML document. Names have their prefix as it is written. */
export interface XmlHandler {
  open(name: string, attributes: Readonly<Record<string, string>>): void
  text(text: string): void
  close(name: string): void
  /** Whether enough was read. */
  readonly isDone?: boolean
}

/**
 * Parses XML. Only the five predefined entities and numeric ones are expanded. Throws a WebError when the document declares
 * entities, or exceeds the limits of nesting and elements.
 */
export function parseXml(source: string, handler: XmlHandler): void {
  const parser = createParser(handler)
  for (let start = 0; start < source.length && handler.isDone !== true; start += PART_LENGTH) {
    parser.write(source.slice(start, start + PART_LENGTH))
  }
  parser.end()
}

function createParser(handler: XmlHandler): Parser {
  let depth = 0
  let elements = 0
  return new Parser(
    {
      onprocessinginstruction(name, data) {
        const isEntity = /^!entity$/i.test(name)
        if (isEntity || (/^!doctype$/i.test(name) && data.includes('['))) {
          throw new WebError('unsupported_content_type', 'The XML declares entities')
        }
      },
      onopentag(name, attributes) {
        depth += 1
        elements += 1
        if (depth > MAX_DEPTH || elements > MAX_ELEMENTS) {
          throw new WebError(
            'too_large',
            `The XML has more than ${MAX_DEPTH} levels or ${MAX_ELEMENTS} elements`,
          )
        }
        handler.open(name, attributes)
      },
      ontext: (text) => handler.text(text),
      onclosetag(name) {
        depth -= 1
        handler.close(name)
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
}

/** The name of the root element at the beginning of a document; undefined if there is none. */
export function rootOf(source: string): string | undefined {
  let root: string | undefined
  const parser = new Parser({ onopentagname: (name) => void (root ??= name) }, { xmlMode: true })
  parser.write(source.slice(0, HEAD_LENGTH))
  return root
}

/** Decodes XML by its byte order mark, its content type, or its declaration; else as UTF-8. */
export function decodeXml(bytes: Uint8Array, contentType: string): string {
  const head = Buffer.from(bytes.subarray(0, 200)).toString('latin1')
  const declared = /^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(head)?.[1]
  // A declaration that can be read in ASCII is not UTF-16.
  const usable = declared === undefined || /^utf-?16/i.test(declared) ? undefined : declared
  const hasCharset = /;\s*charset\s*=/i.test(contentType)
  return decodeText(
    bytes,
    hasCharset || usable === undefined ? contentType : `text/xml; charset=${usable}`,
    false,
  )
}
