// Go's net/http with encoding/json. Start it with GOMAXPROCS=1.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

const resourcePrefix = "/api/v1/resource/"

// Pointers, so that a field that is missing differs from one that is empty.
type resource struct {
	Name   *string `json:"name"`
	Active *bool   `json:"active"`
}

type created struct {
	Status string   `json:"status"`
	ID     uint64   `json:"id"`
	Data   resource `json:"data"`
}

var (
	hello        = []byte("Hello, World!")
	health       = []byte("ok")
	version      = []byte(`{"server":"go"}`)
	unauthorized = []byte(`{"error":"Unauthorized"}`)
	notFound     = []byte(`{"error":"Not Found"}`)
	invalidID    = []byte(`{"error":"Invalid id"}`)
	invalidBody  = []byte(`{"error":"Invalid body"}`)
)

func text(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(body)
}

func answer(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

func bearer(value string) bool {
	return len(value) > 7 && strings.EqualFold(value[:7], "bearer ")
}

func create(w http.ResponseWriter, r *http.Request) {
	if !bearer(r.Header.Get("Authorization")) {
		answer(w, http.StatusUnauthorized, unauthorized)
		return
	}
	id, err := strconv.ParseUint(r.URL.Path[len(resourcePrefix):], 10, 64)
	if err != nil {
		answer(w, http.StatusBadRequest, invalidID)
		return
	}
	var data resource
	err = json.NewDecoder(r.Body).Decode(&data)
	if err != nil || data.Name == nil || data.Active == nil {
		answer(w, http.StatusUnprocessableEntity, invalidBody)
		return
	}
	body, err := json.Marshal(created{"success", id, data})
	if err != nil {
		answer(w, http.StatusInternalServerError, []byte("{}"))
		return
	}
	answer(w, http.StatusOK, body)
}

func route(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case r.Method == "GET" && path == "/":
		text(w, hello)
	case r.Method == "POST" && strings.HasPrefix(path, resourcePrefix):
		create(w, r)
	case r.Method == "GET" && path == "/health":
		text(w, health)
	case r.Method == "GET" && path == "/version":
		answer(w, http.StatusOK, version)
	default:
		answer(w, http.StatusNotFound, notFound)
	}
}

func main() {
	addr := "127.0.0.1:8080"
	if len(os.Args) > 1 {
		addr = os.Args[1]
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", addr)
	log.Fatal(http.Serve(listener, http.HandlerFunc(route)))
}
