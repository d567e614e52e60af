// Express with its router and its JSON parser, one process. Start it with NODE_ENV=production.
import express from 'express'

const [hostname, port] = (process.argv[2] ?? '127.0.0.1:8080').split(':')

function bearer(request, response, next) {
	const token = request.headers.authorization
	if (token && /^bearer ./i.test(token)) next()
	else response.status(401).json({ error: 'Unauthorized' })
}

function create(request, response) {
	// A number, so exact up to 2^53 - 1; greater ids are refused.
	const id = /^\d+$/.test(request.params.id) ? Number(request.params.id) : NaN
	if (!Number.isSafeInteger(id)) return response.status(400).json({ error: 'Invalid id' })
	const data = request.body
	if (typeof data?.name !== 'string' || typeof data.active !== 'boolean')
		return response.status(422).json({ error: 'Invalid body' })
	const { name, active } = data
	response.json({ status: 'success', id, data: { name, active } })
}

const app = express()
app.disable('x-powered-by')
app.get('/', (_, response) => response.type('text/plain').send('Hello, World!'))
app.post('/api/v1/resource/:id', bearer, express.json(), create)
app.get('/health', (_, response) => response.type('text/plain').send('ok'))
app.get('/version', (_, response) => response.json({ server: 'express' }))
app.use((error, _request, response, _next) =>
	response.status(error.status ?? 500).json({ error: 'Invalid body' })
)

const server = app.listen({ host: hostname, port: Number(port), backlog: 4096 }, (error) => {
	if (error) throw error
	console.log(`listening on ${hostname}:${port}`)
})
server.keepAliveTimeout = 75_000 // the default of 5 s would close an idle herd
