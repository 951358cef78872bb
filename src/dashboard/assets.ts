import { pageFiles } from '#dashboard-page'
import { pageHtml } from './html.ts'

/** The types of the page's files, by the ends of their names. */
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

/** File name of the icon. It has no hash, so the icon is requested again. */
const ICON_NAME = 'icon.svg'
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="none" stroke="#2f7fd1" stroke-width="2" stroke-linecap="round" d="M1 4c3-3 4 3 7 0s4 3 7 0M1 9c3-3 4 3 7 0s4 3 7 0M1 14c3-3 4 3 7 0s4 3 7 0"/></svg>`

interface Asset {
  readonly bytes: Uint8Array
  readonly type: string
  readonly isImmutable: boolean
}

/** The page of a dashboard and its files. */
export class Assets {
  #loaded: Promise<{ readonly html: string; readonly byName: ReadonlyMap<string, Asset> }> | undefined

  /** The page itself. */
  async page(): Promise<Response> {
    const { html } = await this.#load()
    return htmlResponse(html)
  }

  /** A file of the page; undefined for an unknown name. */
  async file(name: string, request: Request): Promise<Response | undefined> {
    const asset = (await this.#load()).byName.get(name)
    if (asset === undefined) return undefined
    const { bytes, type, isImmutable } = asset
    const etag = `"${name}"`
    const headers = {
      'content-type': type,
      // The hash of its content is in its name.
      'cache-control': isImmutable ? 'private, max-age=31536000, immutable' : 'private, no-cache',
      etag,
    }
    if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
    return new Response(Uint8Array.from(bytes), { headers })
  }

  #load() {
    this.#loaded ??= load().catch((error: unknown) => {
      this.#loaded = undefined
      throw error
    })
    return this.#loaded
  }
}

async function load() {
  const files = await pageFiles()
  const nameOf = (ending: string) => {
    const file = files.find(({ name }) => name.endsWith(ending))
    if (file === undefined) throw new Error(`the dashboard's page has no ${ending} file: build the package`)
    return file.name
  }
  const icon = { name: ICON_NAME, bytes: new TextEncoder().encode(ICON) }
  const byName = new Map(
    [...files, icon].map(({ name, bytes }): [string, Asset] => {
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
      return [name, { bytes, type, isImmutable: name !== ICON_NAME }]
    }),
  )
  return { html: pageHtml(nameOf('.js'), nameOf('.css')), byName }
}

/** A page that is not kept: it names files that change. */
export function htmlResponse(html: string, status = 200, headers: Readonly<Record<string, string>> = {}) {
  return new Response(html, {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', ...headers },
  })
}
