import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { JsonResponse } from '../http/json-response.ts'
import { DOCUMENT_PATH, openApiDocument, type DocumentOptions } from './document.ts'

/** The route of the OpenAPI document. Requires the key, as every request does (§5). Beyond the interface document. */
export function openApiRoute(options: DocumentOptions) {
  let document: ReturnType<typeof openApiDocument> | undefined
  return new Hono<{ Bindings: HttpBindings }>().get(DOCUMENT_PATH, () => {
    // Made at the first request, since most services are never asked for it.
    document ??= openApiDocument(options)
    return new JsonResponse(document)
  })
}
