// Which buffers there are: host code that passes an address inside of a buffer for the buffer is told so.
#pragma once
namespace sim {
bool is_buffer(const void *object);
}
