/** The bare query behind a bare server: `bare-search.ts {data file}`. It runs the first query of each POST. */
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { listen } from '../server.ts'
import { bareSearch } from './bare-query.ts'

const [data = ''] = process.argv.slice(2)
const search = bareSearch(new DatabaseSync(data, { readOnly: true }))

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (text: string) => (body += text))
  request.on('end', () => {
    const { search_queries }: { search_queries: readonly [string] } = JSON.parse(body)
    const answer = JSON.stringify({ results: search(search_queries[0]) })
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
  })
})
listen(server)
