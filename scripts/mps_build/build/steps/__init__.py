"""The steps of a build: one verb, one file, one public function; a step never imports a step."""
